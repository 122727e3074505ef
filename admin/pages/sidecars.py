"""What is known of the sidecars that a call goes by: whether they have what policy says, and without what."""

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


def known_sidecars(reading: SidecarReading, names: Iterable[ProxyName]) -> Mapping[ProxyName, Sidecar]:
    """Return what is known of each of these sidecars, at one moment: it is asked on the event loop."""
    states = {each.name: each.state for each in reading.proxies()}
    left_out = reading.left_out()
    streams: dict[str, list[StreamStatus]] = {}
    for status in reading.streams():
        streams.setdefault(status.node_key, []).append(status)
    return {
        name: Sidecar(
            _unknown(reading, name, states.get(name), streams.get(str(name), ())),
            tuple(Without(each.object, each.match, each.said) for each in left_out if name in each.proxies),
        )
        for name in names
    }


def _unknown(
    reading: SidecarReading, name: ProxyName, state: ProxyState | None, streams: Iterable[StreamStatus]
) -> str:
    """Return why it is not known what a sidecar has, empty where it is."""
    served = [each for each in streams if each.served]
    if state is not ProxyState.CONNECTED:
        return "is not connected"
    if not served:
        return "is served nothing yet"
    if failure := reading.failure(name):
        return f"could not be configured anew: {failure}"
    waiting = {
        short_type(status.type_url)
        for stream in served
        for status in stream.types
        if type_state(stream, status) in (SyncState.PENDING, SyncState.ASKED)
    }
    if waiting:
        return f"has not acknowledged yet what it was sent ({', '.join(sorted(waiting))})"
    parts = {each.object for each in reading.left_out() if name in each.proxies}
    for type_url, resource in reading.rejected(name):
        behind = {each.key for each in reading.objects_behind(name, type_url, resource)}
        if not parts & behind:
            return f"rejects {short_type(type_url)} {resource}, and has what was good before"
    return ""
