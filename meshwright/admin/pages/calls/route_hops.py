"""What a request goes by besides sidecars: where it is sent to, and the endpoints that may take it. Pure."""

import contextlib
from collections.abc import Iterable, Iterator

from catalog.oracle import decide as oracle
from catalog.oracle.decide import LocalReply, Request
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.backends.addresses import called_addresses
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.readiness import why_withheld
from catalog.store.inventory import holder_of
from catalog.store.view import View
from meshwright.admin.jsonable import Document, Json
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.service import Service, ServicePort
from meshwright.mesh.workload import Endpoint, Explicit, Workload


def behind(view: View, asked: Request, port: ServicePort) -> tuple[Endpoint, ...]:
    """Return the endpoints of the services that share a request, whether they get traffic or not."""
    arrived = oracle.arriving(view, asked)
    if isinstance(arrived, LocalReply):
        return ()
    split = oracle.split_for(view, arrived, port)
    shares = oracle.backends(view, arrived, port, split)
    return tuple(
        each for key, theirs, weight in shares if weight > 0 for each in endpoints(view, key, theirs)
    )


def endpoint(view: View, found: Endpoint, policies: Iterable[ProxyPolicy]) -> Document:
    """Return an endpoint: whether all of the callers' sidecars are given it, and why it gets no traffic."""
    holders = [holder for name in found.proxies if (holder := holder_of(view, name)) is not None]
    given = [_is_given(each, found) for each in policies]
    return {
        "service": str(found.service),
        "address": str(HostPort(found.address, found.port)),
        "identity": None if found.identity is None else str(found.identity),
        "workloads": [str(each.key) for each in holders],
        "proxies": [str(each) for each in found.proxies],
        "given": bool(given) and all(given),
        "withheld": _withheld(view, found),
        "application": next((where for each in holders if (where := _application(each, found))), None),
    }


def dialled(
    view: View, caller: Workload, asked: Request, service: Service, there: Iterable[Endpoint]
) -> Document:
    """Return how a workload calls a service's port: by which interception, and where.

    Explicitly at its upstreams' addresses; else at the service's own, or its endpoints' where it has none.
    """
    if isinstance(kind := caller.interception, Explicit):
        at: list[Json] = [
            str(HostPort(each.local_address, each.local_port))
            for each in kind.upstreams
            if (each.service, each.service_port) == (asked.service, asked.port)
        ]
        return {"interception": "explicit", "called_at": at}
    places = _places(view, asked, service, there)
    led: list[Json] = [str(each) for each in places if kind.ipv6 or ":" not in each.host]
    return {"interception": "transparent", "called_at": led}


def _places(view: View, asked: Request, service: Service, there: Iterable[Endpoint]) -> Iterator[HostPort]:
    if service.headless:
        for each in there:
            if not why_withheld(view, each):
                yield from (HostPort(address, each.port) for address in each.addresses)
        return
    with contextlib.suppress(ValueError):  # the range is full: a problem of its own
        yield from (HostPort(each, asked.port) for each in called_addresses(view, service))


def _withheld(view: View, found: Endpoint) -> str:
    if found.identity is None:
        return "nobody with a sidecar is known there"
    return why_withheld(view, found)


def _is_given(policy: ProxyPolicy, found: Endpoint) -> bool:
    """Say whether a sidecar is told of an endpoint; it need not be where the one that is called answers."""
    return any(
        each.as_called or any((at.address, at.port) == (found.address, found.port) for at in each.endpoints)
        for each in policy.service_destinations
        if each.service == found.service
    )


def _application(holder: Workload, found: Endpoint) -> str:
    match holder.interception:
        case Explicit(application_address=None):
            return ""
        case Explicit(application_address=address) if address is not None:
            return str(HostPort(address, found.port))
        case _:
            return str(HostPort("127.0.0.1", found.port))
