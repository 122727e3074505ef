"""`/debug/xds`: the xDS streams, and the state of each resource type on them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from meshwright.admin.jsonable import Document, jsonable
from meshwright.admin.pages.proxies.sync_reason import type_state
from meshwright.admin.readers import StreamReading
from meshwright.sidecars.addresses import plain_address
from meshwright.sidecars.type_words import short_type
from xds.stream_status import StreamStatus, SyncState, TypeStatus

NACKED: Final = "nacked"
"""State of a type with a rejected resource."""

# From worst to best.
_WORST: tuple[SyncState, ...] = (SyncState.REJECTED, SyncState.PENDING, SyncState.ASKED, SyncState.SYNCED)
_SYNC = {
    SyncState.REJECTED: NACKED,
    SyncState.PENDING: "pending",
    SyncState.SYNCED: "synced",
    SyncState.ASKED: "asked",
}


def streams(reading: StreamReading) -> Document:
    """Return every open xDS stream with the state of each resource type."""
    return {"streams": [stream(status) for status in reading.streams()]}


def by_proxy(statuses: Iterable[StreamStatus]) -> Mapping[str, Sequence[StreamStatus]]:
    """Return streams by the common name of their proxy, in unchanged order."""
    result: dict[str, list[StreamStatus]] = {}
    for status in statuses:
        result.setdefault(status.node_key, []).append(status)
    return result


def stream(status: StreamStatus) -> Document:
    """Return one xDS stream as JSON, with the last response of each resource type and the answer."""
    return {
        "stream": status.number,
        "proxy": status.node_key,
        "node": status.node.id if status.node else None,
        "user_agent": status.node.user_agent if status.node else None,
        "peer": plain_address(status.peer),
        "protocol": status.variant.value,
        "since": jsonable(status.since),
        "served": status.served,
        "types": {
            short_type(type_status.type_url): _type(type_status, type_state(status, type_status))
            for type_status in status.types
        },
    }


def _type(status: TypeStatus, state: SyncState) -> Document:
    rejection = status.rejection
    return {
        "type_url": status.type_url,
        "state": _SYNC[state],
        "version": status.sent_version,
        "nonce": status.sent_nonce,
        "last_sent": jsonable(status.sent_at),
        "acknowledged_version": status.acked_version,
        "error": None
        if rejection is None
        else {
            "code": rejection.code,
            "message": rejection.message,
            "resources": list(status.rejected),
        },
        "wildcard": status.wildcard,
        "names": list(status.names),
    }


def sync(statuses: Iterable[StreamStatus]) -> dict[str, str]:
    """Return the state of each type over all streams of a proxy; the worst state counts."""
    sync_states: dict[str, SyncState] = {}
    for status in statuses:
        for type_status in status.types:
            name, state = short_type(type_status.type_url), type_state(status, type_status)
            sync_states[name] = min(state, sync_states.get(name, state), key=_WORST.index)
    return {name: _SYNC[state] for name, state in sync_states.items()}
