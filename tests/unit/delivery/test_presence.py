"""Who is here: as long as they have a stream, a while longer, and no more of them than there is room for."""

import asyncio

from meshwright.delivery.presence import ConnectionGracePeriod, Presence
from meshwright.mesh.identity import ProxyName
from xds.cache import NodeKey, SnapshotCache

ONE, TWO, THREE = (NodeKey(f"{each}.store.shop") for each in ("one", "two", "three"))


def _here(lingering: ConnectionGracePeriod, now: float) -> list[str]:
    return [each.uuid for each in lingering.here(now)]


def test_a_proxy_is_here_until_a_while_after_its_last_stream() -> None:
    """And the picture is the very same as long as nobody comes or goes."""
    lingering = ConnectionGracePeriod(10.0)
    assert lingering.came(ONE)
    assert lingering.due() is None
    here = lingering.here(0.0)
    assert list(here) == [ProxyName.parse(ONE)]
    lingering.left(ONE, 5.0)
    assert lingering.due() == 15.0
    assert lingering.here(14.9) is here
    assert _here(lingering, 15.0) == []
    assert lingering.due() is None


def test_one_that_comes_back_in_time_was_never_gone() -> None:
    """Nothing is made for it again; it lingers anew when it leaves."""
    lingering = ConnectionGracePeriod(10.0)
    lingering.came(ONE)
    here = lingering.here(0.0)
    lingering.left(ONE, 1.0)
    assert not lingering.came(ONE)
    assert lingering.here(100.0) is here
    lingering.left(ONE, 101.0)
    assert lingering.due() == 111.0


def test_one_that_comes_and_goes_between_two_looks_lingers_too() -> None:
    """What it had asked for is made: it may be back."""
    lingering = ConnectionGracePeriod(10.0)
    lingering.came(ONE)
    lingering.left(ONE, 1.0)
    assert _here(lingering, 1.0) == ["one"]
    assert _here(lingering, 11.0) == []


def test_without_lingering_one_is_gone_at_once() -> None:
    """The setting may be 0."""
    lingering = ConnectionGracePeriod(0.0)
    lingering.came(ONE)
    assert _here(lingering, 0.0) == ["one"]
    lingering.left(ONE, 1.0)
    assert _here(lingering, 1.0) == []


def test_so_many_linger_and_no_more() -> None:
    """Beyond that those that left first are gone: flapping thousands do not keep everything."""
    lingering = ConnectionGracePeriod(10.0, most=2)
    for moment, each in enumerate((ONE, TWO, THREE)):
        lingering.came(each)
        lingering.left(each, float(moment))
    assert lingering.due() == 0.0
    assert _here(lingering, 3.0) == ["three", "two"]
    assert lingering.due() == 11.0


def test_the_cache_tells_of_first_watches_and_last_ones() -> None:
    """Two streams of one proxy are one presence."""
    told: list[tuple[str, bool]] = []

    def attended(node: NodeKey, *, here: bool) -> None:
        told.append((node, here))

    cache = SnapshotCache(attended)
    one, two = (cache.watch(ONE, lambda: None) for _ in range(2))
    cache.unwatch(one)
    assert told == [(ONE, True)]
    cache.unwatch(two)
    cache.watch(ONE, lambda: None)
    assert told == [(ONE, True), (ONE, False), (ONE, True)]


async def test_arrivals_after_quiet_are_due_at_once_and_those_that_follow_together() -> None:
    """Of a burst each is looked at with those that came meanwhile."""
    now = [100.0]
    presence = Presence(ConnectionGracePeriod(10.0), lambda: now[0])
    presence.attended(ONE, here=True)
    await presence.due()
    assert len(presence.here()) == 1
    waiting = asyncio.ensure_future(presence.due())
    presence.attended(TWO, here=True)
    presence.attended(THREE, here=True)
    await asyncio.sleep(0)
    assert not waiting.done(), "it is within the burst"
    now[0] += 1.0
    await waiting
    assert len(presence.here()) == 3


async def test_the_end_of_lingering_is_due() -> None:
    """Nobody has to come for it."""
    now = [100.0]
    presence = Presence(ConnectionGracePeriod(10.0), lambda: now[0])
    presence.attended(ONE, here=True)
    assert len(presence.here()) == 1
    presence.attended(ONE, here=False)
    now[0] += 10.0
    await presence.due()
    assert len(presence.here()) == 0
