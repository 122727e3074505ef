"""Tests of calls of a store from threads, which wait for the event loop of the store."""

import asyncio

import pytest

from meshwright.records.contract import StoreUnavailableError
from meshwright.records.threads import CallOnLoopError, ThreadCalls
from tests.tools.shared_records import LoopThread


async def _answer(done: list[str]) -> str:
    done.append("asked")
    return "answer"


async def _wait_for_ever() -> None:
    await asyncio.Event().wait()


async def _time_out() -> None:
    raise TimeoutError("of the work itself")


def test_thread_gets_the_result_or_the_error_of_its_work() -> None:
    """A time limit of the work itself stays the error of the work."""
    with LoopThread() as thread:
        calls = ThreadCalls(thread.loop)
        assert calls.run(_answer([])) == "answer"
        with pytest.raises(TimeoutError, match="of the work itself"):
            calls.run(_time_out())


async def test_blocking_call_on_the_event_loop_is_an_error_and_not_a_deadlock() -> None:
    """The work does not begin. A thread of the same loop may call."""
    done = list[str]()
    calls = ThreadCalls(asyncio.get_running_loop())
    with pytest.raises(CallOnLoopError, match="call it in a thread"):
        calls.run(_answer(done))
    assert done == []
    assert await asyncio.to_thread(calls.run, _answer(done)) == "answer"


async def test_coroutine_of_any_event_loop_waits_without_blocking_it() -> None:
    """On another loop than that of the store, on that loop itself, and after its end."""
    done = list[str]()
    with LoopThread() as thread:
        assert await ThreadCalls(thread.loop).wait_for(_answer(done)) == "answer"
    assert await ThreadCalls(asyncio.get_running_loop()).wait_for(_answer(done)) == "answer"
    with pytest.raises(StoreUnavailableError, match="event loop of the store has ended"):
        await ThreadCalls(thread.loop).wait_for(_answer(done))
    assert done == ["asked", "asked"]


def test_store_without_an_answer_is_unavailable() -> None:
    """The wait of a thread ends by the patience, and by the end of the loop."""
    with (
        LoopThread() as thread,
        pytest.raises(StoreUnavailableError, match=r"not answered for 0\.01 seconds"),
    ):
        ThreadCalls(thread.loop, patience=0.01).run(_wait_for_ever())
    with pytest.raises(StoreUnavailableError, match="event loop of the store has ended"):
        ThreadCalls(thread.loop).run(_answer([]))


def test_thread_does_not_wait_for_work_that_a_stopping_server_cancels() -> None:
    """The work may be done, so the error is that of an unknown outcome."""

    async def cancelled() -> None:
        raise asyncio.CancelledError

    with LoopThread() as thread, pytest.raises(StoreUnavailableError, match="the server is stopping"):
        ThreadCalls(thread.loop).run(cancelled())
