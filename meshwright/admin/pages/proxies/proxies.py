"""`/debug/proxy`: every proxy that is or should be here, where it stands, and why it is behind."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, Protocol

from catalog.relations.backends.readiness import WITHDRAWN, is_admitted, waits_for
from catalog.store.inventory import holder_of
from catalog.store.objects import workload_object
from catalog.store.view import View
from certs.ledger.entry import LedgerEntry
from meshwright.admin.jsonable import Document, Json, jsonable
from meshwright.admin.pages.proxies.streams import NACKED, by_proxy, sync
from meshwright.admin.pages.proxies.sync_reason import ProxyEvidence, duration, is_dead, newest, pending, why
from meshwright.admin.proxy_names import workload_of
from meshwright.admin.readers import ProxyReading, RejectionReading, StreamReading
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import POD
from meshwright.mesh.workload import Workload
from meshwright.sidecars.addresses import plain_address
from meshwright.sidecars.type_words import short_type
from xds.protocol.resources.resource import ResourceName, TypeUrl
from xds.stream_status import StreamStatus

NAMED: Final = 20
"""For how many rejected resources a list of proxies names the object at fault, which takes a while each."""


class ProxiesPage(ProxyReading, RejectionReading, StreamReading, Protocol):
    """What the page on all proxies reads."""


def proxies(reading: ProxiesPage, entries: Iterable[LedgerEntry], now: datetime) -> Iterator[Document]:
    """Yield every proxy that is or should be here; `entries` is the ledger."""
    streams = by_proxy(reading.streams())
    issued, view, left = newest(entries, now), reading.view(), iter(range(NAMED))
    ejected = reading.ejected()
    for each in reading.proxies():
        found = known(reading, each.name, streams.get(str(each.name), ()), issued, left, ejected)
        yield proxy(each, found, view, now)


def known(
    reading: ProxiesPage,
    name: ProxyName,
    streams: Iterable[StreamStatus],
    issued: Mapping[str, LedgerEntry],
    left: Iterator[object],
    ejected: Mapping[str, tuple[ProxyName, ...]],
) -> ProxyEvidence:
    """Return what is known of one proxy; `issued` are the newest certificates by common name.

    `ejected` is who has ejected endpoints, by address. Why it rejected a resource is said as often as `left`
    has something left.
    """

    def refusal(type_url: TypeUrl, resource: ResourceName) -> str:
        return "" if next(left, None) is None else reading.refusal(name, type_url, resource)

    entry, failure, rejected = issued.get(str(name)), reading.failure(name), reading.rejected(name)
    waits, unreceived = _waits_for(reading.view(), name), reading.unreceived(name)
    by = _ejected_by(reading.view(), name, ejected) if ejected else ()
    return ProxyEvidence(
        tuple(streams), entry, failure, rejected, refusal, waits, unreceived, by, reading.dead_after()
    )


def _ejected_by(
    view: View | None, name: ProxyName, ejected: Mapping[str, tuple[ProxyName, ...]]
) -> tuple[ProxyName, ...]:
    """Return who has ejected an endpoint at an address of a proxy's workload."""
    workload = None if view is None else holder_of(view, name)
    own = () if workload is None else (workload.address, *workload.other_addresses)
    return tuple(sorted({by for address in own for by in ejected.get(address, ())}))


def _waits_for(view: View | None, name: ProxyName) -> str:
    """Return why the workload of a proxy gets no traffic yet."""
    if view is None or holder_of(view, name) is None:
        return ""
    why = waits_for(view, name)
    return "" if why == WITHDRAWN else why  # that is said of its certificate


def one(reading: ProxiesPage, status: ProxyStatus, entries: Iterable[LedgerEntry], now: datetime) -> Document:
    """Return one proxy."""
    streams = [each for each in reading.streams() if each.node_key == str(status.name)]
    return proxy(
        status,
        known(reading, status.name, streams, newest(entries, now), iter((1,)), reading.ejected()),
        reading.view(),
        now,
    )


def _placed(workload: Workload | None, view: View | None) -> Mapping[str, Json]:
    """Return the Pod that a proxy is in, and the node that this runs on; None where it is in none."""
    if workload is None or view is None:
        return {"pod": None, "node": None}
    is_pod = workload_object(view, workload.key).kind == POD
    return {"pod": str(workload.key) if is_pod else None, "node": workload.node or None}


def proxy(status: ProxyStatus, found: ProxyEvidence, view: View | None, now: datetime) -> Document:
    """Return one proxy.

    `held` says that it is connected, and nothing can be served to it (yet); `admitted` that its workload gets
    traffic; `dead` that it is gone for long, and callers have ejected it. In `sync` a type is `nacked` as
    long as it has a resource that the proxy has rejected, also where the proxy has acknowledged what it is
    served instead.
    """
    workload = workload_of(status, view)
    here, streams = status.state is ProxyState.CONNECTED, found.streams
    waiting: dict[str, Json] = {name: round(age, 1) for name, age in pending(streams, now).items()}
    return {
        "uuid": status.name.uuid,
        "service": status.name.service,
        "namespace": status.name.namespace,
        "cn": str(status.name),
        "state": status.state.value,
        "held": here and not any(status.served for status in streams),
        "admitted": view is not None and status.known and is_admitted(view, status.name),
        "why": why(status, found, now),
        "ejected_by": [str(each) for each in found.ejected_by],
        "dead": is_dead(status, found, now),
        "address": plain_address(status.address) or None,
        "since": jsonable(status.since),
        "age": duration(now - status.since),
        "age_seconds": round((now - status.since).total_seconds(), 1),
        "workload": str(workload.key) if workload is not None else None,
        **_placed(workload, view),
        "identity": str(workload.identity) if workload is not None else None,
        "streams": len(streams),
        "protocol": streams[0].variant.value if streams else None,
        "sync": {**sync(streams), **dict.fromkeys((short_type(kind) for kind, _ in found.rejected), NACKED)},
        "pending_seconds": waiting,
    }
