"""Tests of the thread in which a server follows the store that it shares with others."""

import asyncio
import threading

import pytest

from meshwright.controller.sharing.store.store_thread import StoreThread
from meshwright.records.contract import RecordsError, StoreUnavailableError
from tests.tools.deadline import until


class _Follower:
    """A task of the store that fails as often as `errors` has an error, and then works until cancelled."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.begun = 0
        self.go_on = threading.Event()

    async def run(self) -> None:
        """Fail, or work until cancelled."""
        self.begun += 1
        if self.errors:
            await asyncio.to_thread(self.go_on.wait)
            raise self.errors.pop(0)
        await asyncio.Event().wait()


async def test_task_is_started_again_after_an_error_of_the_store() -> None:
    """Until it works again, the remark for operators has the error; also in a group of errors."""
    follower = _Follower(ExceptionGroup("of tasks", [RecordsError("not permitted")]))
    thread = StoreThread(again=0.0, steady=0.2)
    try:
        thread.start("shared ledger", follower.run)
        assert thread.remarks() == ()
        follower.go_on.set()
        await until(lambda: thread.remarks() == ("shared ledger: not permitted",))
        await until(lambda: thread.remarks() == ())
        assert follower.begun == 2
    finally:
        thread.close()


def test_two_tasks_with_one_name_are_a_fault() -> None:
    """The server would wait for the second one only, and would not notice the end of the first."""
    thread, follower = StoreThread(), _Follower()
    try:
        thread.start("shared ledger", follower.run)
        with pytest.raises(ValueError, match="the task 'shared ledger' of the store is started twice"):
            thread.start("shared ledger", follower.run)
    finally:
        thread.close()


def test_no_task_is_left_over_that_is_started_after_the_end() -> None:
    """A stop may come while the server still opens; Python would warn of a task that was never awaited."""
    thread = StoreThread()
    thread.close()
    with pytest.raises(StoreUnavailableError, match="the event loop of the store has ended"):
        thread.start("shared ledger", _Follower().run)


async def test_another_error_ends_the_server() -> None:
    """A fault of the program is not repeated: the task of the server's event loop raises it."""
    follower = _Follower(ValueError("a fault"))
    thread = StoreThread(again=0.0)
    try:
        thread.start("shared ledger", follower.run)
        follower.go_on.set()
        with pytest.raises(ValueError, match="a fault"):
            await thread.ended("shared ledger")
    finally:
        thread.close()


async def test_calls_during_the_end_are_not_left_waiting() -> None:
    """Threads call the store without a pause while it closes, and each call ends."""
    thread, errors = StoreThread(), list[str]()

    def call() -> None:
        try:
            while True:
                thread.run(asyncio.sleep(0))
        except StoreUnavailableError as error:
            errors.append(str(error))

    calls = [asyncio.create_task(asyncio.to_thread(call)) for _ in range(4)]
    await asyncio.to_thread(thread.run, asyncio.sleep(0.01))
    await asyncio.to_thread(thread.close)
    await asyncio.gather(*calls)
    assert len(errors) == len(calls)


def test_calls_after_the_end_are_refused() -> None:
    """A server that stops closes the store once, whichever part comes first."""
    thread = StoreThread()
    thread.close()
    thread.close()
    with pytest.raises(StoreUnavailableError, match="event loop of the store has ended"):
        thread.run(asyncio.sleep(0))


async def test_connection_outlives_the_tasks() -> None:
    """A cancelled task still withdraws the server from the store, so that another one leads at once."""
    thread, begun, steps = StoreThread(), threading.Event(), list[str]()

    async def announce() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            steps.append("withdrawn")

    async def disconnect() -> None:
        steps.append("disconnected")

    thread.start("presence among the servers", announce)
    await asyncio.to_thread(begun.wait)
    await asyncio.to_thread(thread.close, disconnect)
    assert steps == ["withdrawn", "disconnected"]
