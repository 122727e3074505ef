"""What the debug pages say: pure functions from what is read to JSON. No key is ever among it."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from urllib.parse import unquote

from admin.access import access_pairs
from admin.jsonable import Json, jsonable
from admin.metrics import short_type
from admin.reading import MeshReading, ProxyStanding, ProxyState
from catalog.hosts import hosts
from catalog.view import View
from certs.ledger import LedgerEntry
from certs.material import ServiceCertificate
from mesh.names import Namespace
from mesh.objects import Problem, Sourced
from providers.contract import Freshness
from xds.status import StreamStatus, SyncState, TypeStatus, Variant

Document = dict[str, Json]

_WORST: tuple[SyncState, ...] = (SyncState.REJECTED, SyncState.PENDING, SyncState.ASKED, SyncState.SYNCED)
_SYNC = {
    SyncState.REJECTED: "nacked",
    SyncState.PENDING: "pending",
    SyncState.SYNCED: "synced",
    SyncState.ASKED: "asked",
}


def xds(reading: MeshReading) -> Document:
    """Return every stream with its types."""
    return {"streams": [stream(status) for status in reading.streams()]}


def stream(status: StreamStatus) -> Document:
    """Return one stream: whose, since when, and each type's newest response with what was said to it."""
    return {
        "stream": status.number,
        "proxy": status.node_key,
        "node": status.node.id if status.node else None,
        "user_agent": status.node.user_agent if status.node else None,
        "peer": plain_address(status.peer),
        "protocol": status.variant.value,
        "since": jsonable(status.since),
        "served": status.served,
        "types": {short_type(each.type_url): _type(each, type_state(status, each)) for each in status.types},
    }


def type_state(stream: StreamStatus, status: TypeStatus) -> SyncState:
    """Return where a type of a stream stands.

    A delta client that reconnects says what it holds; where all of that is current it is sent nothing, and
    there is nothing to acknowledge: that is in step, not waiting.
    """
    if status.state is SyncState.ASKED and stream.served and stream.variant is Variant.DELTA:
        return SyncState.SYNCED
    return status.state


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


def plain_address(peer: str) -> str:
    """Return a peer's address without gRPC's scheme and escapes: `127.0.0.1:5`, `[::1]:5`."""
    scheme, colon, rest = peer.partition(":")
    return unquote(rest) if colon and scheme in ("ipv4", "ipv6") else peer


def sync(statuses: Iterable[StreamStatus]) -> dict[str, str]:
    """Return the state of each type over a proxy's streams, the worst where they differ."""
    found: dict[str, SyncState] = {}
    for status in statuses:
        for each in status.types:
            name, state = short_type(each.type_url), type_state(status, each)
            found[name] = min(state, found.get(name, state), key=_WORST.index)
    return {name: _SYNC[state] for name, state in found.items()}


def proxies(reading: MeshReading) -> Document:
    """Return every proxy that is or should be here."""
    streams: dict[str, list[StreamStatus]] = {}
    for status in reading.streams():
        streams.setdefault(status.node_key, []).append(status)
    view = reading.view()
    return {
        "proxies": [
            proxy(standing, streams.get(str(standing.name), []), view) for standing in reading.proxies()
        ]
    }


def proxy(standing: ProxyStanding, streams: list[StreamStatus], view: View | None) -> Document:
    """Return one proxy; `held` says that it is connected, and nothing can be served to it (yet)."""
    workload = view.workloads_by_uuid.get(standing.name.uuid) if view is not None else None
    here = standing.state is ProxyState.CONNECTED
    return {
        "uuid": standing.name.uuid,
        "service": standing.name.service,
        "namespace": standing.name.namespace,
        "cn": str(standing.name),
        "state": standing.state.value,
        "held": here and not any(status.served for status in streams),
        "address": plain_address(standing.address) or None,
        "since": jsonable(standing.since),
        "workload": str(workload.key) if workload is not None and standing.known else None,
        "identity": str(workload.identity) if workload is not None and standing.known else None,
        "streams": len(streams),
        "protocol": streams[0].variant.value if streams else None,
        "sync": dict(sync(streams)),
    }


def certificates(reading: MeshReading, now: datetime) -> Document:
    """Return service certificates and the ledger of proxy certificates: what they say, never their keys."""
    view = reading.view()
    return {
        "service_certificates": [
            service_certificate(each, each.identity.spiffe_id(view.settings.trust_domain), now)
            for each in reading.certificates().values()
            if view is not None
        ],
        "proxy_certificates": [ledger_entry(entry, now) for entry in reading.ledger()],
    }


def service_certificate(certificate: ServiceCertificate, uri: str, now: datetime) -> Document:
    """Return what one service certificate says."""
    return {
        "identity": str(certificate.identity),
        "serial": certificate.serial,
        "uri": uri,
        "dns_names": list(certificate.dns_names),
        "not_before": jsonable(certificate.not_before),
        "not_after": jsonable(certificate.not_after),
        "seconds_left": int((certificate.not_after - now).total_seconds()),
    }


def ledger_entry(entry: LedgerEntry, now: datetime) -> Document:
    """Return what the ledger says of one proxy certificate."""
    return {
        "cn": entry.common_name,
        "serial": entry.serial,
        "state": entry.state.value,
        "issued_at": jsonable(entry.issued_at),
        "not_after": jsonable(entry.not_after),
        "claimed_at": jsonable(entry.claimed_at),
        "revoked_at": jsonable(entry.revoked_at),
        "expired": now > entry.not_after,
    }


def policies(reading: MeshReading) -> Document:
    """Return the objects in force, each with its origin, and everything that is wrong."""
    return {
        "problems": [problem(each) for each in reading.problems()],
        "failures": [
            {"group": group, "error": error, "kept": kept} for group, error, kept in reading.failures()
        ],
        "objects": [sourced(each) for each in reading.objects().values()],
    }


def problem(found: Problem) -> Document:
    """Return one problem, in its parts and as one line."""
    return {
        "severity": found.severity.value,
        "code": found.code,
        "origin": str(found.origin),
        "object": str(found.key) if found.key else None,
        "field": found.field,
        "value": found.value,
        "expected": found.expected,
        "line": str(found),
    }


def sourced(found: Sourced) -> Document:
    """Return one object in force; `stale` means that a newer form of it is bad."""
    return {
        "kind": found.key.kind,
        "namespace": found.key.namespace,
        "name": found.key.name,
        "origin": str(found.origin),
        "stale": found.stale,
        "value": jsonable(found.value),
    }


def config(reading: MeshReading) -> Document:
    """Return the MeshConfig in force and the server's settings."""
    view = reading.view()
    return {
        "mesh_config": jsonable(view.config) if view is not None else None,
        "settings": jsonable(reading.settings()),
    }


def access(reading: MeshReading) -> Document:
    """Return for every identity and service port whether calls may pass, and by which objects."""
    view = reading.view()
    return {"access": [] if view is None else access_pairs(view)}


def sources(reading: MeshReading, now: datetime) -> Document:
    """Return how fresh each source is."""
    return {"sources": [source(name, each, now) for name, each in sorted(reading.freshness().items())]}


def source(name: str, freshness: Freshness, now: datetime) -> Document:
    """Return how fresh one source is; `age_seconds` since its last full read."""
    read = freshness.last_full_read
    return {
        "name": name,
        "last_event": jsonable(freshness.last_event),
        "last_full_read": jsonable(read),
        "age_seconds": None if read is None else (now - read).total_seconds(),
        "error": freshness.error or None,
        "error_since": jsonable(freshness.error_since),
    }


def hosts_lines(view: View | None, namespace: str) -> Document:
    """Return the lines of a hosts file as one namespace needs it."""
    lines = hosts(view, Namespace(namespace)) if view is not None else ()
    return {"hosts": [{"address": address, "names": list(names)} for address, names in lines]}


def counted(problems: Iterable[Problem]) -> Mapping[str, int]:
    """Count problems by severity."""
    found: dict[str, int] = {}
    for each in problems:
        found[each.severity.value] = found.get(each.severity.value, 0) + 1
    return found
