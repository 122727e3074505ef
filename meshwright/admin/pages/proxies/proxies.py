"""`/debug/proxy`: every known proxy with its state, and the reason if its configuration is outdated."""

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
"""Maximum number of rejected resources with the object at fault, because each search takes a while."""


class ProxiesPage(ProxyReading, RejectionReading, StreamReading, Protocol):
    """Access to the server's state, as the page Proxies needs it."""


def proxies(reading: ProxiesPage, entries: Iterable[LedgerEntry], now: datetime) -> Iterator[Document]:
    """Yield the state of every connected, expected and former proxy as JSON; `entries` is the ledger."""
    streams = by_proxy(reading.streams())
    # One iterator for all proxies, because NAMED is the limit of the whole page.
    issued, view, left = newest(entries, now), reading.view(), iter(range(NAMED))
    ejected = reading.ejected()
    for status in reading.proxies():
        proxy_evidence = known(reading, status.name, streams.get(str(status.name), ()), issued, left, ejected)
        yield proxy(status, proxy_evidence, view, now)


def known(
    reading: ProxiesPage,
    name: ProxyName,
    streams: Iterable[StreamStatus],
    issued: Mapping[str, LedgerEntry],
    left: Iterator[object],
    ejected: Mapping[str, tuple[ProxyName, ...]],
) -> ProxyEvidence:
    """Return the evidence about one proxy.

    `issued` are the newest certificates by common name. `ejected` are the proxies that ejected endpoints, by
    address. Looking up the error of a rejected resource takes one item of `left`; without items, errors are
    empty.
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
    """Return the proxies that ejected an endpoint at an address of this proxy's workload."""
    workload = None if view is None else holder_of(view, name)
    own = () if workload is None else (workload.address, *workload.other_addresses)
    return tuple(sorted({by for address in own for by in ejected.get(address, ())}))


def _waits_for(view: View | None, name: ProxyName) -> str:
    """Return the reason why a proxy's workload gets no traffic yet."""
    if view is None or holder_of(view, name) is None:
        return ""
    why = waits_for(view, name)
    return "" if why == WITHDRAWN else why  # the reason for its certificate is shown already


def one(reading: ProxiesPage, status: ProxyStatus, entries: Iterable[LedgerEntry], now: datetime) -> Document:
    """Return the state of one proxy as JSON; `entries` is the ledger."""
    streams = [stream for stream in reading.streams() if stream.node_key == str(status.name)]
    return proxy(
        status,
        known(reading, status.name, streams, newest(entries, now), iter((1,)), reading.ejected()),
        reading.view(),
        now,
    )


def _placed(workload: Workload | None, view: View | None) -> Mapping[str, Json]:
    """Return the Pod of a proxy and the node of its workload; None for the Pod if the workload is no Pod."""
    if workload is None or view is None:
        return {"pod": None, "node": None}
    is_pod = workload_object(view, workload.key).kind == POD
    return {"pod": str(workload.key) if is_pod else None, "node": workload.node or None}


def proxy(status: ProxyStatus, proxy_evidence: ProxyEvidence, view: View | None, now: datetime) -> Document:
    """Return one proxy.

    `held` means connected without a configuration. `admitted` means that its workload gets traffic. `dead`
    means disconnected for long and ejected by callers. In `sync`, a type is `nacked` while one of its
    resources is rejected, even if the proxy has acknowledged the version that it gets instead.
    """
    workload = workload_of(status, view)
    here, streams = status.state is ProxyState.CONNECTED, proxy_evidence.streams
    waiting: dict[str, Json] = {name: round(age, 1) for name, age in pending(streams, now).items()}
    return {
        "uuid": status.name.uuid,
        "service": status.name.service,
        "namespace": status.name.namespace,
        "cn": str(status.name),
        "state": status.state.value,
        "held": here and not any(status.served for status in streams),
        "admitted": view is not None and status.known and is_admitted(view, status.name),
        "why": why(status, proxy_evidence, now),
        "ejected_by": [str(proxy_name) for proxy_name in proxy_evidence.ejected_by],
        "dead": is_dead(status, proxy_evidence, now),
        "address": plain_address(status.address) or None,
        "since": jsonable(status.since),
        "age": duration(now - status.since),
        "age_seconds": round((now - status.since).total_seconds(), 1),
        "workload": str(workload.key) if workload is not None else None,
        **_placed(workload, view),
        "identity": str(workload.identity) if workload is not None else None,
        "streams": len(streams),
        "protocol": streams[0].variant.value if streams else None,
        "sync": {
            **sync(streams),
            **dict.fromkeys((short_type(kind) for kind, _ in proxy_evidence.rejected), NACKED),
        },
        "pending_seconds": waiting,
    }
