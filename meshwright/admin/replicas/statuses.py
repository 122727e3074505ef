"""State of each proxy over all servers of a mesh. A pure module."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName

SHARED_AFTER: Final = timedelta(minutes=2)
"""Minimum time of a proxy at two servers that proves two proxies, because a proxy that moves is at both."""

Statuses = Mapping[str, Iterable[ProxyStatus]]
"""The statuses that each server has, by the name of the server."""


@dataclass(frozen=True, slots=True)
class PlacedStatus:
    """Status of a proxy, and the server where the proxy is or was connected; None if it never was."""

    status: ProxyStatus
    replica: str | None


def placed(own: str, statuses: Statuses, now: datetime) -> tuple[PlacedStatus, ...]:
    """Return one status for each proxy, sorted by name.

    A proxy is disconnected only if no server has it. Only the server `own` knows its expected proxies here,
    and its view of the workloads decides whether a disconnected proxy is still wanted.
    """
    every: dict[ProxyName, list[PlacedStatus]] = {}
    for replica in sorted(statuses):
        for status in statuses[replica]:
            every.setdefault(status.name, []).append(PlacedStatus(status, replica))
    return tuple(_one(own, every[name], now) for name in sorted(every))


def _one(own: str, found: list[PlacedStatus], now: datetime) -> PlacedStatus:
    if here := [item for item in found if item.status.state is ProxyState.CONNECTED]:
        newest = max(here, key=lambda item: item.status.since)
        return replace(newest, status=replace(newest.status, peers=_peers(newest.status, here, now)))
    mine = next((item.status for item in found if item.replica == own), None)
    gone = [item for item in found if item.status.state is not ProxyState.EXPECTED]
    if not gone:
        return PlacedStatus(found[0].status, None)
    last = max(gone, key=lambda item: item.status.since)
    if mine is None:
        return last
    state = ProxyState.DISCONNECTED if mine.known else ProxyState.ENDED
    return replace(last, status=replace(last.status, state=state, known=mine.known))


def _peers(newest: ProxyStatus, here: Iterable[PlacedStatus], now: datetime) -> tuple[str, ...]:
    """Return the addresses of all proxies that share an identity; empty without a proof of several."""
    at = [item.status for item in here if now - item.status.since >= SHARED_AFTER]
    if len(at) < 2:
        return newest.peers
    return tuple(sorted({address for status in at for address in status.peers or (status.address,)}))
