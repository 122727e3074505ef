"""Outbound policy: the services that a client may call, their addresses, and the identities behind them.

A client only sees services that policy lets it reach:

- services with workloads of a TrafficTarget's destination, at the ports that the target admits;
- the apex of a split with such a backend;
- every service of a permissive namespace.

A scope removes services that it does not name. The server's sidecar decides again, for each request.
"""

from typing import Final

from catalog.policy.access import in_force, may_call
from catalog.policy.objects import splits
from catalog.policy.objects.routing import Place
from catalog.policy.values.interception import SocketAddress
from catalog.relations.backends.addresses import called_addresses
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.backends.workloads import services_of_identity
from catalog.relations.permissive import is_permissive, open_services
from catalog.relations.route_reach import consumed_services, mixed, services_leading_to
from catalog.store.smi import splits_by_backend, targets_by_source
from catalog.store.view import IN_VIEW, View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.service import EscapedSlashes, Protocol, ServiceKey, ServicePort
from meshwright.mesh.workload import Endpoint


@derived
def visible(view: View, client: ServiceIdentity) -> tuple[ServiceKey, ...]:
    """Return the services that a client may be able to reach at some port, sorted."""
    by_routes = (*mixed(view).value(), *consumed_services(view, client.namespace))
    return tuple(sorted({*granted(view, client), *open_services(view), *by_routes}))


@derived
def granted(view: View, client: ServiceIdentity) -> tuple[ServiceKey, ...]:
    """Return the services that a client may reach by TrafficTargets, without those open to all; sorted.

    For example, a target for `cart-v2` also makes the split's apex `cart` reachable.
    """
    direct = {
        service
        for target in targets_by_source(view).lookup(client)
        if in_force(target)
        for service in services_of_identity(view, target.destination)
    }
    # An apex or a parent is visible because of its backends; it needs no workloads of its own.
    apexes = {split.apex for service in direct for split in splits_by_backend(view).lookup(service)}
    parents = {parent for service in direct for parent in services_leading_to(view, service)}
    seen = direct.union(apex for apex in apexes | parents if apex in view.services)
    return tuple(
        sorted(service_key for service_key in seen if not is_permissive(view, service_key.namespace))
    )


def answering(
    view: View, client: ServiceIdentity | None, key: ServiceKey, port: ServicePort
) -> tuple[ServiceIdentity, ...]:
    """Return the identities behind a service's port that a client may call, sorted."""
    return tuple(dict.fromkeys(identity for identity, _ in permitted(view, client, key, port)))


@derived
def permitted(
    view: View, client: ServiceIdentity | None, key: ServiceKey, port: ServicePort
) -> tuple[tuple[ServiceIdentity, Port], ...]:
    """Return the identities behind a service's port that a client may call, with the workload's port.

    Sorted.
    """
    protocol = protocol_of(view, key, port)
    behind = _behind(view).value(key, port)
    return tuple(item for item in behind if may_call(view, client, *item, protocol))


@derived
def identities_behind(
    view: View, key: ServiceKey, port: ServicePort
) -> tuple[tuple[ServiceIdentity, Port], ...]:
    """Return the identities behind a service's port in the mesh, with the workload's port, sorted."""
    result = {
        (endpoint.identity, endpoint.port)
        for endpoint in endpoints(view, key, port)
        if endpoint.identity is not None
    }
    return tuple(sorted(result))


_behind: Final = IN_VIEW.firewalls(identities_behind)
"""A firewall: endpoints change often, but their identities rarely, and all clients read only these."""


def allowed_endpoints(
    view: View, client: ServiceIdentity | None, key: ServiceKey, port: ServicePort
) -> tuple[Endpoint, ...]:
    """Return the endpoints of a service's port that a client may call: in the mesh, and permitted."""
    may_answer = permitted(view, client, key, port)
    return tuple(
        endpoint
        for endpoint in endpoints(view, key, port)
        if (endpoint.identity, endpoint.port) in may_answer
    )


def is_vacant(view: View, place: Place) -> bool:
    """Return whether no workload behind a service's port can refuse a client.

    That is so in a permissive namespace, and without workloads of the mesh, where calls get 503.
    """
    key, port = place
    return is_permissive(view, key.namespace) or not _behind(view).value(key, port)


def reaches(view: View, client: ServiceIdentity | None, place: Place) -> bool:
    """Return whether a client may call any workload behind a service's port."""
    return bool(permitted(view, client, *place))


@derived
def is_plain(view: View, place: Place) -> bool:
    """Return whether no workload behind a service's port has a sidecar, and there is an endpoint.

    A gateway then connects in plain text. One endpoint with a sidecar is enough for TLS alone: otherwise an
    endpoint could take the others' place without a proof of its identity.
    """
    there = endpoints(view, *place)
    return bool(there) and all(endpoint.identity is None for endpoint in there)


@derived
def ports_in_plain(view: View, key: ServiceKey, port: ServicePort) -> tuple[tuple[None, Port], ...]:
    """Return the ports of workloads without a sidecar behind a service's port, in the form of `permitted`."""
    numbers = {item.port for item in endpoints(view, key, port) if item.identity is None}
    return tuple((None, number) for number in sorted(numbers))


def reaches_from_edge(view: View, client: ServiceIdentity, place: Place) -> bool:
    """Return whether a gateway may call a service's port; workloads without a sidecar admit all callers."""
    return is_plain(view, place) or reaches(view, client, place)


def called_at(
    view: View, client: ServiceIdentity | None, key: ServiceKey, port: ServicePort
) -> tuple[SocketAddress, ...]:
    """Return the addresses of a service for its callers, own or virtual, sorted.

    A headless service is called at the endpoints that the client may call, with their ports, or at all
    endpoints if a split decides about the backend.
    """
    service = view.services[key]
    if not service.headless:
        return tuple(
            sorted(
                SocketAddress(called_address, port.port) for called_address in called_addresses(view, service)
            )
        )
    if splits.in_force(view, key, protocol_of(view, key, port)):
        result = endpoints(view, key, port)
    else:
        result = allowed_endpoints(view, client, key, port)
    return tuple(
        sorted({SocketAddress(at, endpoint.port) for endpoint in result for at in endpoint.addresses})
    )


def escaped_slashes(view: View, key: ServiceKey, protocol: Protocol) -> EscapedSlashes:
    """Return the handling of escaped slashes in calls to a service."""
    return view.services[key].escaped_slashes if protocol.is_http else EscapedSlashes.REJECT
