"""Tests of the proxy registry: connected, expected, disconnected and ended proxies."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from meshwright.delivery.proxies.registry import REMEMBERED, ProxyRegistry
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.delivery.quarantine.acknowledged_resources import AcknowledgedVersions
from meshwright.mesh.identity import ProxyName, SidecarKey
from meshwright.mesh.values.picture import Picture
from xds.cache import NodeKey
from xds.protocol.resources.resource import CLUSTER
from xds.stream_status import Variant

START = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = ProxyName.parse("one.s.n"), ProxyName.parse("two.s.n")
NODE = NodeKey("one.s.n")


class _Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def _registry() -> tuple[ProxyRegistry, _Clock]:
    clock = _Clock()
    return ProxyRegistry(clock), clock


@pytest.mark.parametrize("seed", range(5))
def test_counts_of_proxies_equal_a_count_of_their_states(seed: int) -> None:
    """Counts are updated with each random event: streams, workloads, and the passage of time."""
    chance = random.Random(seed)  # noqa: S311 - dice
    registry, clock = _registry()
    names = [ProxyName.parse(f"{item}.s.n") for item in "abcdef"]
    expected: Picture[SidecarKey, ProxyName] = Picture()
    opened: list[NodeKey] = []
    for _ in range(200):
        name = chance.choice(names)
        match chance.randrange(5):
            case 0 | 1:
                opened.append(NodeKey(str(name)))
                registry.opened(opened[-1], "a:1", Variant.DELTA)
            case 2 if opened:
                registry.closed(opened.pop(chance.randrange(len(opened))), "a:1")
            case 3:
                expected = expected.changed({name.sidecar: None if name.sidecar in expected else name})
                registry.follow(expected)
            case _:
                clock.now += REMEMBERED / 3
        states = [status.state for status in registry.statuses()]
        assert registry.counts() == {
            proxy_state.value: states.count(proxy_state) for proxy_state in ProxyState
        }


def test_proxy_is_expected_then_connected_then_disconnected() -> None:
    """Each status has the time at which its state began."""
    registry, clock = _registry()
    registry.follow(Picture({TWO.sidecar: TWO, ONE.sidecar: ONE}))
    assert registry.counts() == {"connected": 0, "expected": 2, "disconnected": 0, "ended": 0}
    clock.now += timedelta(seconds=1)
    registry.opened(NODE, "a:1", Variant.DELTA)
    registry.follow(Picture({ONE.sidecar: ONE, TWO.sidecar: TWO}))
    assert registry.statuses() == (
        ProxyStatus(ONE, ProxyState.CONNECTED, "a:1", START + timedelta(seconds=1), known=True),
        ProxyStatus(TWO, ProxyState.EXPECTED, "", START, known=True),
    )
    clock.now += timedelta(seconds=1)
    registry.closed(NODE, "a:1")
    assert registry.statuses()[0] == ProxyStatus(
        ONE, ProxyState.DISCONNECTED, "a:1", START + timedelta(seconds=2), known=True
    )
    assert registry.counts() == {"connected": 0, "expected": 1, "disconnected": 1, "ended": 0}


def test_proxy_whose_workload_is_removed_has_ended() -> None:
    """A Pod that a rollout replaces loses its stream and its workload, in either order."""
    registry, _ = _registry()
    registry.follow(Picture({ONE.sidecar: ONE, TWO.sidecar: TWO}))
    for name in (ONE, TWO):
        registry.opened(NodeKey(str(name)), "a:1", Variant.DELTA)
    registry.closed(NodeKey(str(ONE)), "a:1")
    registry.follow(Picture())
    registry.closed(NodeKey(str(TWO)), "a:1")
    assert [status.state for status in registry.statuses()] == [ProxyState.ENDED, ProxyState.ENDED]
    assert registry.counts() == {"connected": 0, "expected": 0, "disconnected": 0, "ended": 2}


def test_proxy_with_one_of_two_streams_left_is_connected() -> None:
    """The time since when the proxy is connected does not change either."""
    registry, clock = _registry()
    registry.opened(NODE, "a:1", Variant.DELTA)
    clock.now += timedelta(seconds=1)
    registry.opened(NODE, "a:2", Variant.SOTW)
    registry.closed(NODE, "a:1")
    assert registry.statuses() == (ProxyStatus(ONE, ProxyState.CONNECTED, "a:2", START, known=False),)
    registry.closed(NODE, "a:2")
    assert registry.counts() == {"connected": 0, "expected": 0, "disconnected": 0, "ended": 1}


def test_disconnected_proxy_is_forgotten_after_its_workload_is_removed() -> None:
    """It is remembered while its workload exists, and later dropped with its acknowledgements."""
    registry, clock = _registry()
    registry.opened(NODE, "a:1", Variant.DELTA)
    registry.closed(NODE, "a:1")
    clock.now += REMEMBERED * 2
    registry.follow(Picture({ONE.sidecar: ONE}))
    assert [status.state for status in registry.statuses()] == [ProxyState.DISCONNECTED]
    registry.proxy(NODE).acknowledged[CLUSTER] = AcknowledgedVersions(1)
    registry.follow(Picture())
    assert registry.statuses() == ()
    assert registry.find(NODE) is None
    assert registry.acknowledged(NODE) == {}, "all that was known of it is gone at once"
