"""Supervised tasks: if a task that should run for ever ends, the program ends with an error."""

import asyncio
from collections.abc import Coroutine

import structlog

_log = structlog.get_logger("controller.process.tasks")


class TaskEnded(Exception):
    """A task that should run as long as the program has ended."""


async def guard(name: str, work: Coroutine[object, object, None]) -> None:
    """Run `work` until cancelled; raise TaskEnded, with the cause, after any other end."""
    try:
        await work
    except asyncio.CancelledError:
        raise
    except Exception as error:
        _log.exception("task failed", task=name)
        raise TaskEnded(f"the task {name!r} failed: {type(error).__name__}: {error}") from error
    raise TaskEnded(f"the task {name!r} ended, and should not have")


def spawn(group: asyncio.TaskGroup, name: str, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
    """Start `work` in `group` under `name`, supervised."""
    return group.create_task(guard(name, work), name=name)
