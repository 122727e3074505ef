"""Tests of the wake queue, which runs the pending work of many streams a few at a time and in order."""

import asyncio
from functools import partial

from xds.server.streams.wake_queue import AT_ONCE, TURN_SECONDS, WakeQueue


async def test_each_turn_of_the_loop_runs_at_most_at_once_items() -> None:
    """Other tasks run between turns. Every item runs once, in order, and after the caller that woke it."""
    waking, done = WakeQueue(lambda: 0.0), list[int]()
    for number in range(2 * AT_ONCE + 5):
        waking.wake(partial(done.append, number))
    seen = [len(done)]
    for _ in range(4):
        await asyncio.sleep(0)
        seen.append(len(done))
    assert seen == [0, AT_ONCE, 2 * AT_ONCE, 2 * AT_ONCE + 5, 2 * AT_ONCE + 5]
    assert done == list(range(2 * AT_ONCE + 5))


async def test_turn_ends_when_its_time_is_used_up() -> None:
    """Two items of half a turn fill one turn, and a longer item fills a turn alone."""
    now, done = [0.0], list[float]()
    waking = WakeQueue(lambda: now[0])

    def work(seconds: float) -> None:
        now[0] += seconds
        done.append(seconds)

    for seconds in (TURN_SECONDS / 2, TURN_SECONDS / 2, 2 * TURN_SECONDS, 0.0):
        waking.wake(partial(work, seconds))
    seen = []
    for _ in range(3):
        await asyncio.sleep(0)
        seen.append(len(done))
    assert seen == [2, 3, 4]


async def test_item_woken_during_a_turn_runs_in_a_later_turn() -> None:
    """A turn includes only the items that were waiting when it began."""
    waking, done = WakeQueue(lambda: 0.0), list[int]()
    waking.wake(lambda: waking.wake(partial(done.append, 1)))
    await asyncio.sleep(0)
    assert not done
    await asyncio.sleep(0)
    assert done == [1]


async def test_item_that_raises_does_not_stop_the_others() -> None:
    """The event loop's exception handler receives the error."""
    waking, done, heard = WakeQueue(), list[int](), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context["exception"]))
    waking.wake(partial(next, iter(())))
    waking.wake(partial(done.append, 1))
    for _ in range(2):
        await asyncio.sleep(0)
    assert done == [1]
    assert [type(item) for item in heard] == [StopIteration]
