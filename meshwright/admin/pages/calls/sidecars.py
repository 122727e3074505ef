"""What is known of the sidecars that a call goes by: whether they have what policy says, and without what."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from catalog.explain.enforcement import ExcludedPolicy, Sidecar
from meshwright.admin.pages.proxies.streams import by_proxy
from meshwright.admin.pages.proxies.sync_reason import type_state
from meshwright.admin.readers import OriginReading, ProxyReading, RejectionReading, StreamReading
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName
from meshwright.sidecars.type_words import short_type
from xds.stream_status import StreamStatus, SyncState


class SidecarReading(OriginReading, ProxyReading, RejectionReading, StreamReading, Protocol):
    """What is read of the sidecars that a call goes by."""


class SidecarState(enum.StrEnum):
    """Where a sidecar stands; in all but IN_STEP it is not known whether it has what policy says."""

    IN_STEP = "in step"
    NOT_CONNECTED = "not connected"
    HELD = "held"
    FAILED = "failed"
    BEHIND = "behind"
    REJECTED = "rejected"


def known_sidecars(reading: SidecarReading, names: Iterable[ProxyName]) -> Mapping[ProxyName, Sidecar]:
    """Return what is known of each of these sidecars, at one moment: it is asked on the event loop."""
    return {name: stood.sidecar for name, stood in stands(reading, names).items()}


@dataclass(frozen=True, slots=True)
class SidecarStatus:
    """Where a sidecar stands, with the predicate that says so, empty of one in step; and what it is without.

    `status` is None where nobody knows of it.
    """

    stand: SidecarState
    clause: str
    without: tuple[ExcludedPolicy, ...]
    status: ProxyStatus | None
    streams: tuple[StreamStatus, ...]

    @property
    def sidecar(self) -> Sidecar:
        """The same for who explains a call."""
        return Sidecar(self.clause, self.without)


def stands(reading: SidecarReading, names: Iterable[ProxyName]) -> Mapping[ProxyName, SidecarStatus]:
    """Return where each of these sidecars stands; what there is of all proxies is looked at once."""
    statuses = {each.name: each for each in reading.proxies()}
    streams, left_out = by_proxy(reading.streams()), reading.left_out()

    def stood(name: ProxyName) -> SidecarStatus:
        status, theirs = statuses.get(name), tuple(streams.get(str(name), ()))
        missed = tuple(
            ExcludedPolicy(each.object, each.match, each.said) for each in left_out if name in each.proxies
        )
        return SidecarStatus(*_stand(reading, name, status, theirs, missed), missed, status, theirs)

    return {name: stood(name) for name in names}


def _stand(
    reading: SidecarReading,
    name: ProxyName,
    status: ProxyStatus | None,
    streams: Iterable[StreamStatus],
    without: Iterable[ExcludedPolicy],
) -> tuple[SidecarState, str]:
    served = [each for each in streams if each.served]
    if status is None or status.state is not ProxyState.CONNECTED:
        return SidecarState.NOT_CONNECTED, "is not connected"
    if not served:
        return SidecarState.HELD, "is served nothing yet"
    if failure := reading.failure(name):
        return SidecarState.FAILED, f"could not be configured anew: {failure}"
    waiting = {
        short_type(each.type_url)
        for stream in served
        for each in stream.types
        if type_state(stream, each) in (SyncState.PENDING, SyncState.ASKED)
    }
    if waiting:
        sent = ", ".join(sorted(waiting))
        return SidecarState.BEHIND, f"has not acknowledged yet what it was sent ({sent})"
    parts = {each.object for each in without}
    for type_url, resource in reading.rejected(name):
        behind = {each.key for each in reading.objects_behind(name, type_url, resource)}
        if not parts & behind:
            return (
                SidecarState.REJECTED,
                f"rejects {short_type(type_url)} {resource}, and has what was good before",
            )
    return SidecarState.IN_STEP, ""
