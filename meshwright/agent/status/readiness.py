"""Readiness of a proxy, from Envoy's own state. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.agent.envoy.gateway import SentListener, sent_listeners
from meshwright.agent.envoy.listeners import Listener, listeners
from meshwright.sidecars.layout import FIRST_FREE_PORT, LOW_PORT

STATS_PATH: Final = (
    "/stats?filter=^(cluster_manager.cds|listener_manager.lds|listener_manager.workers_started)"
)
"""Path of the counters of accepted configuration.

`meshwright.agent.reach.connection_watch` watches the connection.
"""


@dataclass(frozen=True, slots=True)
class ProxyState:
    """Envoy's state, accepted and rejected updates, and served ports.

    `sent` are the listeners that the control plane sent to a gateway's proxy, None for a sidecar. `served`
    has the names of the listeners that Envoy uses.
    """

    state: str
    accepted_clusters: int
    accepted_listeners: int
    rejected: int
    workers_started: bool
    ports: frozenset[int]
    sent: tuple[SentListener, ...] | None = None
    served: frozenset[str] = frozenset()


def read_state(
    server_info: Mapping[str, object],
    stats: str,
    dump: Mapping[str, object],
    gateway: Mapping[str, object],
) -> ProxyState:
    """Parse the answers of `/server_info`, STATS_PATH, LISTENERS_PATH and GATEWAY_PATH."""
    active = listeners(dump)
    result = {name: int(value) for name, value in re.findall(r"^([\w.]+): (\d+)$", stats, re.MULTILINE)}
    return ProxyState(
        str(server_info.get("state", "unknown")),
        result.get("cluster_manager.cds.update_success", 0),
        result.get("listener_manager.lds.update_success", 0),
        result.get("cluster_manager.cds.update_rejected", 0)
        + result.get("listener_manager.lds.update_rejected", 0),
        result.get("listener_manager.workers_started", 0) == 1,
        served_ports(active),
        sent_listeners(gateway),
        frozenset(listener.name for listener in active),
    )


def missing(proxy: ProxyState, application_ports: Iterable[int], *, was_ready: bool) -> tuple[str, ...]:
    """Return the reasons for which a proxy is not ready; empty for a ready proxy.

    The counters belong to this Envoy process: after a replacement the new process must receive everything
    itself. The proxy of a gateway needs all listeners that the control plane sent. These may be none: then
    the status of the Gateway has the reason. If it `was_ready` before, one of them is enough, so that an
    update that Envoy rejects does not take the others out of service.
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
    if proxy.sent is not None and proxy.accepted_listeners:
        result += _missing_of_gateway(proxy, proxy.sent, was_ready=was_ready)
    return tuple(result)


def _missing_of_gateway(
    proxy: ProxyState, sent: tuple[SentListener, ...], *, was_ready: bool
) -> tuple[str, ...]:
    lacking = [listener for listener in sent if listener.name not in proxy.served]
    if was_ready and len(lacking) < len(sent):
        return ()
    return tuple(f"{listener} is not in use{_rejected(proxy, listener.place.port)}" for listener in lacking)


def _rejected(proxy: ProxyState, port: int) -> str:
    if not proxy.rejected:
        return ""
    low = f"; {LOW_PORT}" if port < FIRST_FREE_PORT else ""
    return f", and Envoy rejected an update: `meshwright proxies` on the control plane has the reason{low}"


def served_ports(result: Iterable[Listener]) -> frozenset[int]:
    """Return the ports of listeners and of their filter chains."""
    ports = (
        port for listener in result for port in (listener.port, *(chain.port for chain in listener.chains))
    )
    return frozenset(port for port in ports if port is not None)
