"""State of the sidecars on the path of a request: whether they have the current policy, or lack a part."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from catalog.explain.sidecars import ExcludedPolicy, Sidecar
from meshwright.admin.pages.proxies.streams import by_proxy
from meshwright.admin.pages.proxies.sync_reason import type_state
from meshwright.admin.readers import OriginReading, ProxyReading, RejectionReading, StreamReading
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName
from meshwright.sidecars.type_words import short_type
from xds.stream_status import StreamStatus, SyncState


class SidecarReading(OriginReading, ProxyReading, RejectionReading, StreamReading, Protocol):
    """Access to the server's state from which the state of a call's sidecars is derived."""


class SidecarState(enum.StrEnum):
    """State of a sidecar; only for IN_STEP it is certain that the sidecar has the current policy."""

    IN_STEP = "in step"
    NOT_CONNECTED = "not connected"
    HELD = "held"
    FAILED = "failed"
    BEHIND = "behind"
    REJECTED = "rejected"


def known_sidecars(reading: SidecarReading, names: Iterable[ProxyName]) -> Mapping[ProxyName, Sidecar]:
    """Return the evidence about each sidecar at one moment; must be called on the event loop."""
    return {name: stood.sidecar for name, stood in sidecar_states(reading, names).items()}


@dataclass(frozen=True, slots=True)
class SidecarStatus:
    """State of a sidecar, the clause that explains it (empty for IN_STEP), and its excluded policy.

    `status` is None for an unknown proxy.
    """

    state: SidecarState
    clause: str
    without: tuple[ExcludedPolicy, ...]
    status: ProxyStatus | None
    streams: tuple[StreamStatus, ...]

    @property
    def sidecar(self) -> Sidecar:
        """The state of the sidecar as evidence for the explanation of a request."""
        return Sidecar(self.clause, self.without)


def sidecar_states(reading: SidecarReading, names: Iterable[ProxyName]) -> Mapping[ProxyName, SidecarStatus]:
    """Return the state of each sidecar; data of all proxies is read once for all of them."""
    statuses = {proxy.name: proxy for proxy in reading.proxies()}
    streams, left_out = by_proxy(reading.streams()), reading.left_out()

    def stood(name: ProxyName) -> SidecarStatus:
        status, theirs = statuses.get(name), tuple(streams.get(str(name), ()))
        missed = tuple(
            ExcludedPolicy(item.object, item.match, item.message, is_replaced=name in item.replaced)
            for item in left_out
            if name in item.proxies
        )
        return SidecarStatus(*_sidecar_state(reading, name, status, theirs, missed), missed, status, theirs)

    return {name: stood(name) for name in names}


def _sidecar_state(
    reading: SidecarReading,
    name: ProxyName,
    status: ProxyStatus | None,
    streams: Iterable[StreamStatus],
    without: Iterable[ExcludedPolicy],
) -> tuple[SidecarState, str]:
    served = [stream_status for stream_status in streams if stream_status.served]
    if status is None or status.state is not ProxyState.CONNECTED:
        return SidecarState.NOT_CONNECTED, "is not connected"
    if not served:
        return SidecarState.HELD, "does not have a configuration yet"
    if failure := reading.failure(name):
        return (
            SidecarState.FAILED,
            f"keeps its previous configuration, because the new one cannot be computed: {failure}",
        )
    waiting = {
        short_type(type_status.type_url)
        for stream in served
        for type_status in stream.types
        if type_state(stream, type_status) in (SyncState.PENDING, SyncState.ASKED)
    }
    if waiting:
        sent = ", ".join(sorted(waiting))
        return SidecarState.BEHIND, f"has not acknowledged the last response yet ({sent})"
    parts = {policy.object for policy in without}
    for type_url, resource in reading.rejected(name):
        behind = {input_object.key for input_object in reading.objects_behind(name, type_url, resource)}
        # A rejection that is already in `without` is known exactly, so it leaves no doubt.
        if not parts & behind:
            return (
                SidecarState.REJECTED,
                f"rejects {short_type(type_url)} {resource} and keeps the last good version",
            )
    return SidecarState.IN_STEP, ""
