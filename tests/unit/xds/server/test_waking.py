"""Many streams are woken a few at a time, in the order of asking."""

import asyncio

from xds.server.waking import AT_ONCE, Waking


async def test_a_turn_of_the_loop_wakes_so_many_and_others_run_in_between() -> None:
    """The first are woken at once, the rest in the turns after, none twice and none forgotten."""
    waking, events = Waking(), [asyncio.Event() for _ in range(2 * AT_ONCE + 5)]
    for each in events:
        waking.wake(each)
    seen = [sum(each.is_set() for each in events)]
    for _ in range(3):
        await asyncio.sleep(0)
        seen.append(sum(each.is_set() for each in events))
    assert seen == [AT_ONCE, 2 * AT_ONCE, len(events), len(events)]
    assert all(each.is_set() for each in events[: seen[1]])


async def test_few_streams_are_woken_at_once_in_every_turn() -> None:
    """What was asked in one turn does not count in the next."""
    waking = Waking()
    for _ in range(3):
        events = [asyncio.Event() for _ in range(AT_ONCE)]
        for each in events:
            waking.wake(each)
        assert all(each.is_set() for each in events)
        await asyncio.sleep(0)
