"""Tests of presence: connected proxies, their grace period, and its limit."""

import asyncio

from meshwright.delivery.presence import ConnectionGracePeriod, Presence
from meshwright.mesh.identity import ProxyName
from xds.cache import NodeKey, SnapshotCache

ONE, TWO, THREE = (NodeKey(f"{item}.store.shop") for item in ("one", "two", "three"))


def _here(lingering: ConnectionGracePeriod, now: float) -> list[str]:
    return [proxy_name.uuid for proxy_name in lingering.here(now)]


def test_proxy_is_present_until_its_grace_period_ends() -> None:
    """A proxy is present until 10 s after its last stream; until then the picture is the same object."""
    lingering = ConnectionGracePeriod(10.0)
    assert lingering.connected(ONE)
    assert lingering.due() is None
    here = lingering.here(0.0)
    assert list(here) == [ProxyName.parse(ONE)]
    lingering.left(ONE, 5.0)
    assert lingering.due() == 15.0
    assert lingering.here(14.9) is here
    assert _here(lingering, 15.0) == []
    assert lingering.due() is None


def test_proxy_that_returns_within_the_grace_period_is_no_arrival() -> None:
    """Nothing is computed again for the proxy, and its next departure starts a new grace period."""
    lingering = ConnectionGracePeriod(10.0)
    lingering.connected(ONE)
    here = lingering.here(0.0)
    lingering.left(ONE, 1.0)
    assert not lingering.connected(ONE)
    assert lingering.here(100.0) is here
    lingering.left(ONE, 101.0)
    assert lingering.due() == 111.0


def test_proxy_that_connects_and_leaves_between_two_looks_is_present() -> None:
    """Its snapshot is computed all the same, because the proxy may return within the grace period."""
    lingering = ConnectionGracePeriod(10.0)
    lingering.connected(ONE)
    lingering.left(ONE, 1.0)
    assert _here(lingering, 1.0) == ["one"]
    assert _here(lingering, 11.0) == []


def test_proxy_without_a_grace_period_is_absent_at_once() -> None:
    """A grace period of 0 s is a valid setting: the end of the last stream makes the proxy absent."""
    lingering = ConnectionGracePeriod(0.0)
    lingering.connected(ONE)
    assert _here(lingering, 0.0) == ["one"]
    lingering.left(ONE, 1.0)
    assert _here(lingering, 1.0) == []


def test_number_of_proxies_in_their_grace_period_is_limited() -> None:
    """Beyond the limit, proxies that left first are absent, so that flapping proxies do not fill memory."""
    lingering = ConnectionGracePeriod(10.0, most=2)
    for moment, node_key in enumerate((ONE, TWO, THREE)):
        lingering.connected(node_key)
        lingering.left(node_key, float(moment))
    assert lingering.due() == 0.0
    assert _here(lingering, 3.0) == ["three", "two"]
    assert lingering.due() == 11.0


def test_cache_reports_the_first_and_the_last_watch_of_a_proxy() -> None:
    """Two streams of one proxy are one presence, so the second watch is not reported."""
    messages: list[tuple[str, bool]] = []

    def attended(node: NodeKey, *, here: bool) -> None:
        messages.append((node, here))

    cache = SnapshotCache(attended)
    one, two = (cache.watch(ONE, lambda: None) for _ in range(2))
    cache.unwatch(one)
    assert messages == [(ONE, True)]
    cache.unwatch(two)
    cache.watch(ONE, lambda: None)
    assert messages == [(ONE, True), (ONE, False), (ONE, True)]


async def test_arrival_after_a_quiet_time_is_due_at_once_and_a_burst_together() -> None:
    """Arrivals soon after another one wait, so that one round handles all proxies of a burst."""
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


async def test_end_of_a_grace_period_is_due_without_an_arrival() -> None:
    """A round is due when a grace period ends, because the proxy's snapshot is then dropped."""
    now = [100.0]
    presence = Presence(ConnectionGracePeriod(10.0), lambda: now[0])
    presence.attended(ONE, here=True)
    assert len(presence.here()) == 1
    presence.attended(ONE, here=False)
    now[0] += 10.0
    await presence.due()
    assert len(presence.here()) == 0
