"""Many streams do what is due a few at a time, in the order of asking."""

import asyncio
from functools import partial

from xds.server.streams.wake_queue import AT_ONCE, TURN_SECONDS, WakeQueue


async def test_so_many_work_in_a_turn_of_the_loop_and_others_run_in_between() -> None:
    """None works before whoever woke it has done, none twice, and none is forgotten."""
    waking, done = WakeQueue(lambda: 0.0), list[int]()
    for number in range(2 * AT_ONCE + 5):
        waking.wake(partial(done.append, number))
    seen = [len(done)]
    for _ in range(4):
        await asyncio.sleep(0)
        seen.append(len(done))
    assert seen == [0, AT_ONCE, 2 * AT_ONCE, 2 * AT_ONCE + 5, 2 * AT_ONCE + 5]
    assert done == list(range(2 * AT_ONCE + 5))


async def test_a_turn_is_over_when_it_has_lasted_long_enough() -> None:
    """Two that take half of it each are a turn, and one that takes longer is one by itself."""
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


async def test_who_is_woken_by_the_work_of_another_has_its_turn_later() -> None:
    """A turn is over when those have worked that waited when it began."""
    waking, done = WakeQueue(lambda: 0.0), list[int]()
    waking.wake(lambda: waking.wake(partial(done.append, 1)))
    await asyncio.sleep(0)
    assert not done
    await asyncio.sleep(0)
    assert done == [1]


async def test_work_that_raises_costs_nobody_else_a_turn() -> None:
    """The event loop hears of it."""
    waking, done, heard = WakeQueue(), list[int](), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context["exception"]))
    waking.wake(partial(next, iter(())))
    waking.wake(partial(done.append, 1))
    for _ in range(2):
        await asyncio.sleep(0)
    assert done == [1]
    assert [type(each) for each in heard] == [StopIteration]
