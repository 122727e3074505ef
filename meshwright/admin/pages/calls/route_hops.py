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
from meshwright.mesh.workload import Endpoint, Explicit, Workload


def behind(view: View, asked: Request, port: ServicePort) -> tuple[Endpoint, ...]:
    """Return the endpoints of all backends of a request, with and without traffic."""
    arrived = oracle.arriving(view, asked)
    if isinstance(arrived, LocalReply):
        return ()
    split = oracle.split_for(view, arrived, port)
    shares = oracle.backends(view, arrived, port, split)
    return tuple(
        each for key, theirs, weight in shares if weight > 0 for each in endpoints(view, key, theirs)
    )


def endpoint(view: View, found: Endpoint, policies: Iterable[ProxyPolicy]) -> Document:
    """Return an endpoint, with the reason if it gets no traffic.

    `given` is true if all sidecars of the callers have the endpoint.
    """
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
    """Return the interception of a workload, and the addresses at which it calls a service port.

    With explicit interception, these are the addresses of its upstreams. With transparent interception, these
    are the addresses of the service, or of its endpoints for a headless service.
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
    with contextlib.suppress(ValueError):  # the address range is exhausted, which is a problem of its own
        yield from (HostPort(each, asked.port) for each in called_addresses(view, service))


def _withheld(view: View, found: Endpoint) -> str:
    if found.identity is None:
        return "no workload with a sidecar has this address"
    return why_withheld(view, found)


def _is_given(policy: ProxyPolicy, found: Endpoint) -> bool:
    """Return whether a sidecar has an endpoint.

    With `as_called`, the sidecar connects to the called address, and needs no list of endpoints.
    """
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
