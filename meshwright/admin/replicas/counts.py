"""Numbers of proxies by state over all servers, which the leader measures. A pure module."""

from collections import Counter
from collections.abc import Iterable, Mapping

from meshwright.admin.replicas.pulse import Pulse
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus


def own_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that a server among several measures about itself: only its connected proxies."""
    connected = ProxyState.CONNECTED.value
    return {state.value: counts.get(connected, 0) * (state.value == connected) for state in ProxyState}


def leader_counts(statuses: Iterable[ProxyStatus], pulses: Iterable[Pulse]) -> dict[str, int]:
    """Return the counts that the leader measures: its own connected proxies, and the others of the mesh.

    A proxy that is connected to another server is counted there. A proxy that never connected to the leader
    is disconnected if it has disconnected from another server.
    """
    pulses = tuple(pulses)
    elsewhere = {name for pulse in pulses for name in pulse.connected}
    gone = {name for pulse in pulses for name in pulse.disconnected}
    counts: Counter[str] = Counter()
    for status in statuses:
        state, name = status.state, str(status.name)
        if state is not ProxyState.CONNECTED and name in elsewhere:
            continue
        if state is ProxyState.EXPECTED and name in gone:
            state = ProxyState.DISCONNECTED
        counts[state.value] += 1
    return {state.value: counts[state.value] for state in ProxyState}
