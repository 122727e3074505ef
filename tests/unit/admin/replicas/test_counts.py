"""Tests of the numbers of proxies by state, which the servers of one mesh measure together."""

from meshwright.admin.replicas.counts import leader_counts, own_counts
from meshwright.admin.replicas.pulse import Pulse
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName
from tests.unit.admin.conftest import NOW

STATES = {
    "here": ProxyState.CONNECTED,
    "moved": ProxyState.DISCONNECTED,
    "lost": ProxyState.DISCONNECTED,
    "never": ProxyState.EXPECTED,
    "elsewhere": ProxyState.EXPECTED,
    "lost-elsewhere": ProxyState.EXPECTED,
    "ended": ProxyState.ENDED,
    "both": ProxyState.CONNECTED,
}


def test_each_proxy_is_counted_once() -> None:
    """A proxy that moved on is not disconnected, and one lost by another server is."""
    statuses = [
        ProxyStatus(ProxyName.parse(f"{name}.store.shop"), state, "", NOW, True)
        for name, state in STATES.items()
    ]
    pulses = (
        Pulse(("moved.store.shop", "both.store.shop")),
        Pulse(("elsewhere.store.shop",), disconnected=("lost-elsewhere.store.shop", "moved.store.shop")),
    )
    assert leader_counts(statuses, pulses) == {"connected": 2, "expected": 1, "disconnected": 2, "ended": 1}
    assert leader_counts(statuses, ()) == {"connected": 2, "expected": 3, "disconnected": 2, "ended": 1}


def test_other_servers_count_their_streams_only() -> None:
    """The sum over all servers has each proxy once."""
    counts = {"connected": 3, "expected": 2, "disconnected": 1, "ended": 4}
    assert own_counts(counts) == {"connected": 3, "expected": 0, "disconnected": 0, "ended": 0}
