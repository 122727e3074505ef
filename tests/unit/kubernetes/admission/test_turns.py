"""Who gets the thread of a webhook: clients by turns, each with so much waiting, and nobody who has gone."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest
from structlog.testing import capture_logs

from meshwright.kubernetes.admission import turns
from meshwright.kubernetes.admission.turns import Check, FullError, LateError, Turns


class Thread:
    """Turns whose thread is held by a first piece of work until it is let go."""

    def __init__(self) -> None:
        self.turns = Turns("tried")
        self.did: list[str] = []
        self._go = threading.Event()

    async def hold(self) -> "asyncio.Task[None]":
        """Have the thread held."""
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
        """Return work that notes a word."""

        def work(_: Check) -> str:
            self.did.append(word)
            return word

        return work

    async def asked(self, client: str, word: str) -> "asyncio.Task[str]":
        """Have a client ask for work, which waits."""
        task = asyncio.create_task(self.turns.run(client, self.noting(word)))
        await asyncio.sleep(0)
        return task


@pytest.fixture
async def thread() -> AsyncIterator[Thread]:
    """Return turns whose thread can be held."""
    made = Thread()
    yield made
    made.let_go()
    made.turns.close()


async def test_clients_take_turns(thread: Thread) -> None:
    """A client with one piece of work waits for one piece of each other client, and not for all of one's."""
    held = await thread.hold()
    many = [await thread.asked("many", f"many {number}") for number in range(4)]
    one = await thread.asked("one", "one")
    thread.let_go()
    await asyncio.gather(held, one, *many)
    assert thread.did == ["many 0", "one", "many 1", "many 2", "many 3"]


async def test_one_client_has_so_much_work_waiting(thread: Thread) -> None:
    """What is more is refused at once, and others still have room."""
    held = await thread.hold()
    waiting = [await thread.asked("many", str(number)) for number in range(turns.MOST_OF_ONE)]
    with pytest.raises(FullError):
        await thread.turns.run("many", thread.noting("too much"))
    other = await thread.asked("other", "other")
    thread.let_go()
    assert await other == "other"
    await asyncio.gather(held, *waiting)
    assert len(thread.did) == turns.MOST_OF_ONE + 1


async def test_a_newcomer_takes_the_place_of_whoever_has_most(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All places are taken, most of them by one client: the newest of its work makes room."""
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
    with pytest.raises(FullError):  # by now it has no more than its share
        await three
    thread.let_go()
    await asyncio.gather(held, one, two, *many[:2])
    assert sorted(thread.did) == ["0", "1", "one", "two"]


async def test_work_that_waits_ends_with_who_waits_for_it(thread: Thread) -> None:
    """Nobody waits for the answer: it is never begun."""
    held = await thread.hold()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await thread.turns.run("late", thread.noting("late"))
    assert thread.turns.waiting == 1
    thread.let_go()
    await held
    assert await thread.turns.run("next", thread.noting("next")) == "next"
    assert (thread.did, thread.turns.waiting) == (["next"], 0)


async def test_work_that_runs_is_told_that_nobody_waits() -> None:
    """It stops at its next step, and that is no fault of ours."""
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


async def test_a_fault_comes_to_who_waits_for_it() -> None:
    """And the thread is free for the next one."""
    made = Turns("tried")
    with pytest.raises(ZeroDivisionError):
        await made.run("one", lambda _: 1 // 0)
    assert await made.run("one", lambda _: 7) == 7
    made.close()
