"""Parts on the path of a request besides the sidecars: called addresses and endpoints. Pure."""

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
from meshwright.mesh.workload import Edge, Endpoint, Explicit, Workload


def behind(view: View, request: Request, port: ServicePort) -> tuple[Endpoint, ...]:
    """Return the endpoints of all backends of a request, including endpoints without traffic."""
    arrived = oracle.arriving(view, request)
    if isinstance(arrived, LocalReply):
        return ()
    split = oracle.split_for(view, arrived, port)
    shares = oracle.backends(view, arrived, port, split)
    return tuple(
        item for key, theirs, weight in shares if weight > 0 for item in endpoints(view, key, theirs)
    )


def endpoint(view: View, result: Endpoint, policies: Iterable[ProxyPolicy]) -> Document:
    """Return an endpoint, with the reason if it gets no traffic.

    `given` is true if all sidecars of the callers have the endpoint.
    """
    holders = [holder for name in result.proxies if (holder := holder_of(view, name)) is not None]
    given = [_has_endpoint(policy, result) for policy in policies]
    return {
        "service": str(result.service),
        "address": str(HostPort(result.address, result.port)),
        "identity": None if result.identity is None else str(result.identity),
        "workloads": [str(workload.key) for workload in holders],
        "proxies": [str(proxy) for proxy in result.proxies],
        "given": bool(given) and all(given),
        "withheld": _withheld(view, result),
        "application": next(
            (where for workload in holders if (where := _application(workload, result))), None
        ),
    }


def dialled(
    view: View, caller: Workload, request: Request, service: Service, there: Iterable[Endpoint]
) -> Document:
    """Return the interception of a workload, and the addresses at which it calls a service port.

    With explicit interception, these are the addresses of its upstreams. With transparent interception, these
    are the addresses of the service, or of its endpoints for a headless service.
    """
    if isinstance(kind := caller.interception, Explicit):
        at: list[Json] = [
            str(HostPort(upstream.local_address, upstream.local_port))
            for upstream in kind.upstreams
            if (upstream.service, upstream.service_port) == (request.service, request.port)
        ]
        return {"interception": "explicit", "called_at": at}
    if isinstance(kind, Edge):
        return {"interception": "gateway", "called_at": []}
    places = _places(view, request, service, there)
    led: list[Json] = [str(place) for place in places if kind.ipv6 or ":" not in place.host]
    return {"interception": "transparent", "called_at": led}


def _places(view: View, request: Request, service: Service, there: Iterable[Endpoint]) -> Iterator[HostPort]:
    if service.headless:
        for item in there:
            if not why_withheld(view, item):
                yield from (HostPort(address, item.port) for address in item.addresses)
        return
    with contextlib.suppress(ValueError):  # the address range is exhausted, which is a problem of its own
        yield from (
            HostPort(called_address, request.port) for called_address in called_addresses(view, service)
        )


def _withheld(view: View, result: Endpoint) -> str:
    if result.identity is None:
        return "this address does not belong to a workload with a sidecar"
    return why_withheld(view, result)


def _has_endpoint(policy: ProxyPolicy, result: Endpoint) -> bool:
    """Return whether a sidecar has an endpoint.

    With `as_called`, the sidecar connects to the called address, and needs no list of endpoints.
    """
    return any(
        destination.as_called
        or any((at.address, at.port) == (result.address, result.port) for at in destination.endpoints)
        for destination in policy.service_destinations
        if destination.service == result.service
    )


def _application(holder: Workload, result: Endpoint) -> str:
    match holder.interception:
        case Explicit(application_address=None):
            return ""
        case Explicit(application_address=address) if address is not None:
            return str(HostPort(address, result.port))
        case _:
            return str(HostPort("127.0.0.1", result.port))
