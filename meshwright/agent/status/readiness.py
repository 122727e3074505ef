"""Readiness of a proxy, from Envoy's own state. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.agent.envoy.listeners import Listener, listeners

STATS_PATH: Final = (
    "/stats?filter=^(cluster_manager.cds|listener_manager.lds|listener_manager.workers_started)"
)
"""Path of the counters of accepted configuration.

`meshwright.agent.reach.connection_watch` watches the connection.
"""


@dataclass(frozen=True, slots=True)
class ProxyState:
    """Envoy's state, accepted and rejected updates, and served ports."""

    state: str
    accepted_clusters: int
    accepted_listeners: int
    rejected: int
    workers_started: bool
    ports: frozenset[int]


def read_state(server_info: Mapping[str, object], stats: str, dump: Mapping[str, object]) -> ProxyState:
    """Parse the answers of `/server_info`, STATS_PATH and LISTENERS_PATH."""
    result = {name: int(value) for name, value in re.findall(r"^([\w.]+): (\d+)$", stats, re.MULTILINE)}
    return ProxyState(
        str(server_info.get("state", "unknown")),
        result.get("cluster_manager.cds.update_success", 0),
        result.get("listener_manager.lds.update_success", 0),
        result.get("cluster_manager.cds.update_rejected", 0)
        + result.get("listener_manager.lds.update_rejected", 0),
        result.get("listener_manager.workers_started", 0) == 1,
        served_ports(listeners(dump)),
    )


def missing(proxy: ProxyState, application_ports: Iterable[int]) -> tuple[str, ...]:
    """Return the reasons for which a proxy is not ready; empty for a ready proxy.

    The counters belong to this Envoy process: after a replacement the new process must receive everything
    itself.
    """
    result = []
    if proxy.state != "LIVE":
        result.append(f"Envoy is {proxy.state}")
    elif not proxy.workers_started:
        result.append("Envoy has not started its workers")
    rejected = f" ({proxy.rejected} were rejected)" if proxy.rejected else ""
    if not proxy.accepted_clusters:
        result.append(f"clusters have not been received{rejected}")
    if not proxy.accepted_listeners:
        result.append(f"listeners have not been received{rejected}")
    result += [
        f"port {port} is not served by a listener" for port in sorted({*application_ports} - proxy.ports)
    ]
    return tuple(result)


def served_ports(result: Iterable[Listener]) -> frozenset[int]:
    """Return the ports of listeners and of their filter chains."""
    ports = (
        port for listener in result for port in (listener.port, *(chain.port for chain in listener.chains))
    )
    return frozenset(port for port in ports if port is not None)
