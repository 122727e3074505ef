"""Tests of the queue for a webhook's thread: turns of clients, limits, and cancelled work."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest
from structlog.testing import capture_logs

from meshwright.kubernetes.admission import turns
from meshwright.kubernetes.admission.turns import Check, FullError, LateError, Turns


class Thread:
    """Turns whose thread is busy with a first piece of work until it is released."""

    def __init__(self) -> None:
        self.turns = Turns("tried")
        self.did: list[str] = []
        self._go = threading.Event()

    async def hold(self) -> "asyncio.Task[None]":
        """Occupy the thread."""
        began = threading.Event()

        def work(_: Check) -> None:
            began.set()
            self._go.wait(60)

        held = asyncio.create_task(self.turns.run("first", work))
        await asyncio.to_thread(began.wait, 60)
        return held

    def let_go(self) -> None:
        """End the first piece of work."""
        self._go.set()

    def noting(self, word: str) -> Callable[[Check], str]:
        """Return work that records a word."""

        def work(_: Check) -> str:
            self.did.append(word)
            return word

        return work

    async def asked(self, client: str, word: str) -> "asyncio.Task[str]":
        """Queue work of a client."""
        task = asyncio.create_task(self.turns.run(client, self.noting(word)))
        await asyncio.sleep(0)
        return task


@pytest.fixture
async def thread() -> AsyncIterator[Thread]:
    """Return turns whose thread can be occupied."""
    made = Thread()
    yield made
    made.let_go()
    made.turns.close()


async def test_clients_take_turns(thread: Thread) -> None:
    """A client with one piece of work waits for at most one piece of each other client."""
    held = await thread.hold()
    many = [await thread.asked("many", f"many {number}") for number in range(4)]
    one = await thread.asked("one", "one")
    thread.let_go()
    await asyncio.gather(held, one, *many)
    assert thread.did == ["many 0", "one", "many 1", "many 2", "many 3"]


async def test_excess_work_of_one_client_is_refused_at_once(thread: Thread) -> None:
    """One client can fill only its own share, so other clients still have room."""
    held = await thread.hold()
    waiting = [await thread.asked("many", str(number)) for number in range(turns.MOST_OF_ONE)]
    with pytest.raises(FullError):
        await thread.turns.run("many", thread.noting("too much"))
    other = await thread.asked("other", "other")
    thread.let_go()
    assert await other == "other"
    await asyncio.gather(held, *waiting)
    assert len(thread.did) == turns.MOST_OF_ONE + 1


async def test_new_client_displaces_the_newest_work_of_the_client_with_most(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all places taken, the newest work of the largest client makes room.

    A client with no more than its share displaces only its own work.
    """
    monkeypatch.setattr(turns, "MOST", 4)
    held = await thread.hold()
    many = [await thread.asked("many", str(number)) for number in range(4)]
    one = await thread.asked("one", "one")
    with pytest.raises(FullError):
        await many[3]
    two = await thread.asked("two", "two")
    with pytest.raises(FullError):
        await many[2]
    three = await thread.asked("two", "three")
    with pytest.raises(FullError):  # client two has its share already
        await three
    thread.let_go()
    await asyncio.gather(held, one, two, *many[:2])
    assert sorted(thread.did) == ["0", "1", "one", "two"]


async def test_waiting_work_is_dropped_when_its_caller_gives_up(thread: Thread) -> None:
    """Work whose caller has timed out is never started."""
    held = await thread.hold()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await thread.turns.run("late", thread.noting("late"))
    assert thread.turns.waiting == 1
    thread.let_go()
    await held
    assert await thread.turns.run("next", thread.noting("next")) == "next"
    assert (thread.did, thread.turns.waiting) == (["next"], 0)


async def test_running_work_stops_when_its_caller_gives_up() -> None:
    """Work stops at its next check.

    No error is logged, because a cancelled request is no fault of the server.
    """
    made, stopped = Turns("tried"), threading.Event()
    began, go = threading.Event(), threading.Event()

    def work(check: Check) -> None:
        check()
        began.set()
        go.wait(60)
        try:
            check()
        except LateError:
            stopped.set()
            raise

    with capture_logs() as logs:
        asked = asyncio.create_task(made.run("one", work))
        await asyncio.to_thread(began.wait, 60)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        go.set()
        assert await asyncio.to_thread(stopped.wait, 60)
        assert await made.run("one", lambda _: 7) == 7
    assert logs == []
    made.close()


async def test_exception_of_work_reaches_its_caller() -> None:
    """The thread is free for the next work afterwards."""
    made = Turns("tried")
    with pytest.raises(ZeroDivisionError):
        await made.run("one", lambda _: 1 // 0)
    assert await made.run("one", lambda _: 7) == 7
    made.close()
