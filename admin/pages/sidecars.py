"""What is known of the sidecars that a call goes by: whether they have what policy says, and without what."""

import enum
from collections.abc import Iterable, Mapping
from typing import Protocol

from admin.pages.behind import type_state
from admin.reading import OriginReading, ProxyReading, RejectionReading, StreamReading
from catalog.explain.in_force import Sidecar, Without
from delivery.proxies.status import ProxyState
from mesh.identity import ProxyName
from sidecars.type_words import short_type
from xds.server.status import StreamStatus, SyncState


class SidecarReading(OriginReading, ProxyReading, RejectionReading, StreamReading, Protocol):
    """What is read of the sidecars that a call goes by."""


class Stand(enum.StrEnum):
    """Where a sidecar stands; in all but IN_STEP it is not known whether it has what policy says."""

    IN_STEP = "in step"
    NOT_CONNECTED = "not connected"
    HELD = "held"
    FAILED = "failed"
    BEHIND = "behind"
    REJECTED = "rejected"


def known_sidecars(reading: SidecarReading, names: Iterable[ProxyName]) -> Mapping[ProxyName, Sidecar]:
    """Return what is known of each of these sidecars, at one moment: it is asked on the event loop."""
    left_out = reading.left_out()
    return {
        name: Sidecar(
            clause,
            tuple(Without(each.object, each.match, each.said) for each in left_out if name in each.proxies),
        )
        for name, (_, clause) in stands(reading, names).items()
    }


def stands(reading: SidecarReading, names: Iterable[ProxyName]) -> Mapping[ProxyName, tuple[Stand, str]]:
    """Return where each of these sidecars stands, and the predicate that says so, empty of one in step."""
    states = {each.name: each.state for each in reading.proxies()}
    streams: dict[str, list[StreamStatus]] = {}
    for status in reading.streams():
        streams.setdefault(status.node_key, []).append(status)
    return {name: _stand(reading, name, states.get(name), streams.get(str(name), ())) for name in names}


def _stand(
    reading: SidecarReading, name: ProxyName, state: ProxyState | None, streams: Iterable[StreamStatus]
) -> tuple[Stand, str]:
    served = [each for each in streams if each.served]
    if state is not ProxyState.CONNECTED:
        return Stand.NOT_CONNECTED, "is not connected"
    if not served:
        return Stand.HELD, "is served nothing yet"
    if failure := reading.failure(name):
        return Stand.FAILED, f"could not be configured anew: {failure}"
    waiting = {
        short_type(status.type_url)
        for stream in served
        for status in stream.types
        if type_state(stream, status) in (SyncState.PENDING, SyncState.ASKED)
    }
    if waiting:
        sent = ", ".join(sorted(waiting))
        return Stand.BEHIND, f"has not acknowledged yet what it was sent ({sent})"
    parts = {each.object for each in reading.left_out() if name in each.proxies}
    for type_url, resource in reading.rejected(name):
        behind = {each.key for each in reading.objects_behind(name, type_url, resource)}
        if not parts & behind:
            return Stand.REJECTED, f"rejects {short_type(type_url)} {resource}, and has what was good before"
    return Stand.IN_STEP, ""
