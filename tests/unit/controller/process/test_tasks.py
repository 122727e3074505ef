"""Tests of guarded tasks, which must not end while the program runs."""

import asyncio

import pytest
import structlog

from meshwright.controller.process.tasks import TaskEnded, guard, spawn


async def _returns() -> None:
    pass


async def _waits() -> None:
    await asyncio.Event().wait()


async def _fails() -> None:
    raise ValueError("broken")


async def test_task_that_returns_is_an_error_with_its_name() -> None:
    """A task that returns raises TaskEnded with its name."""
    with pytest.raises(TaskEnded, match="the task 'watch' ended, and should not have"):
        await guard("watch", _returns())


async def test_task_that_fails_is_an_error_with_its_cause() -> None:
    """The message has the name of the task, and the type and message of the cause."""
    with (
        structlog.testing.capture_logs() as answer,
        pytest.raises(TaskEnded, match="the task 'watch' failed: ValueError: broken") as caught,
    ):
        await guard("watch", _fails())
    assert [(item["event"], item["task"]) for item in answer] == [("task failed", "watch")]
    assert isinstance(caught.value.__cause__, ValueError)


async def test_group_ends_with_its_first_finished_task() -> None:
    """The other tasks are cancelled, and a cancelled task is not an error."""

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            spawn(group, "forever", _waits())
            spawn(group, "watch", _returns())

    with pytest.raises(ExceptionGroup) as caught:
        await together()
    assert [str(error) for error in caught.value.exceptions] == [
        "the task 'watch' ended, and should not have"
    ]
