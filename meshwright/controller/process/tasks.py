"""Named, guarded tasks: the end of one that should never end is an error that ends the program."""

import asyncio
from collections.abc import Coroutine

import structlog

_log = structlog.get_logger("controller.process.tasks")


class TaskEnded(Exception):
    """A task that lives as long as the program ended by itself."""


async def guard(name: str, work: Coroutine[object, object, None]) -> None:
    """Run `work`, which must not end but by cancellation; raise TaskEnded, with the cause, if it does."""
    try:
        await work
    except asyncio.CancelledError:
        raise
    except Exception as error:
        _log.exception("task failed", task=name)
        raise TaskEnded(f"the task {name!r} failed: {type(error).__name__}: {error}") from error
    raise TaskEnded(f"the task {name!r} ended, and should not have")


def spawn(group: asyncio.TaskGroup, name: str, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
    """Start `work` in `group` under `name`, guarded."""
    return group.create_task(guard(name, work), name=name)
