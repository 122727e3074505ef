"""Outbound policy: which services a workload may call, where, and who stands behind them.

A client sees only what policy lets it reach: services that workloads of some TrafficTarget's destination
back, at ports the target admits, and the apex of a split with such a backend. In permissive mode it sees
every service. The server's sidecar decides again, request by request.
"""

from collections.abc import Iterable

from catalog import splits
from catalog.access import in_force, may_call
from catalog.endpoints import endpoints
from catalog.groups import GroupKey
from catalog.ports import spoken
from catalog.proxy import (
    Destination,
    DestinationEndpoint,
    OutboundRoute,
    OutboundService,
    SocketAddress,
    WeightedBackend,
)
from catalog.view import View
from incremental.derived import derived
from mesh.identity import ServiceIdentity
from mesh.names import IpAddress, Port
from mesh.policy import TrafficSplit
from mesh.service import Protocol, ServiceKey, ServicePort
from mesh.workload import Endpoint, Explicit


@derived
def outbound_services(view: View, group: GroupKey) -> tuple[OutboundService, ...]:
    """Return the service ports that a group of proxies may call, sorted by service and port."""
    if isinstance(group.interception, Explicit):
        return _explicit(view, group, group.interception)
    return _transparent(view, group.identity)


@derived
def visible(view: View, client: ServiceIdentity) -> tuple[ServiceKey, ...]:
    """Return the services that a client may be able to reach by some port, sorted."""
    if view.config.permissive:
        return tuple(view.services)
    direct = {
        service
        for target in view.targets_by_source.get(client, ())
        if in_force(target)
        for workload in view.workloads_by_identity.get(target.destination, ())
        for service in view.services_of.get(workload.key, ())
    }
    apexes = {split.apex for service in direct for split in view.splits_by_backend.get(service, ())}
    return tuple(sorted(direct | {apex for apex in apexes if apex in view.services}))


@derived
def admitted_endpoints(
    view: View, client: ServiceIdentity, key: ServiceKey, port: ServicePort
) -> tuple[Endpoint, ...]:
    """Return the endpoints of a service's port that a client may call: in the mesh and admitted."""
    protocol = protocol_of(view, key, port)
    return tuple(
        each
        for each in endpoints(view, key, port)
        if may_call(view, client, each.identity, each.port, protocol)
    )


@derived
def protocol_of(view: View, key: ServiceKey, port: ServicePort) -> Protocol:
    """Return what is spoken on a service's port."""
    return spoken(port, view.backing.get(key, ()))


@derived
def routes(
    view: View, client: ServiceIdentity, key: ServiceKey, port: ServicePort
) -> tuple[OutboundRoute, ...]:
    """Return where a client's calls to a service's port go; empty where it may reach nobody there."""
    found: list[OutboundRoute] = []
    for split in splits.in_force(view, key, protocol_of(view, key, port)):
        matches = splits.matches(view, split)
        found.append(OutboundRoute(matches, _shares(view, client, split, port), split.key))
    if not found or found[-1].matches is not None:
        found.append(OutboundRoute(None, _itself(view, client, key, port)))
    return tuple(found) if any(route.backends for route in found) else ()


def destinations(
    view: View, client: ServiceIdentity, services: Iterable[OutboundService]
) -> tuple[Destination, ...]:
    """Return the destinations that the routes of these services name, sorted."""
    named: dict[tuple[ServiceKey, str], bool] = {}
    for service in services:
        for route in service.routes:
            for backend in route.backends:
                place = (backend.service, backend.target_port)
                named[place] = named.get(place, False) or service.protocol.is_http
    return tuple(
        destination(view, client, key, target_port, is_http)
        for (key, target_port), is_http in sorted(named.items())
    )


@derived
def destination(
    view: View, client: ServiceIdentity, key: ServiceKey, target_port: str, is_http: bool
) -> Destination:
    """Return a service's target port with the endpoints and identities that a client may call there."""
    found = [
        endpoint
        for port in view.services[key].ports
        if str(port.target_port) == target_port
        for endpoint in admitted_endpoints(view, client, key, port)
    ]
    return Destination(
        service=key,
        target_port=target_port,
        is_http=is_http,
        server_name=key.fqdn(view.settings.cluster_domain),
        identities=tuple(sorted({each.identity for each in found if each.identity is not None})),
        endpoints=tuple(
            sorted({DestinationEndpoint(e.address, e.port, e.locality, e.weight) for e in found})
        ),
    )


def _transparent(view: View, client: ServiceIdentity) -> tuple[OutboundService, ...]:
    taken: set[tuple[IpAddress, Port]] = set()
    found: list[OutboundService] = []
    for key in visible(view, client):
        for port in sorted(view.services[key].ports, key=lambda each: each.port):
            ways = routes(view, client, key, port)
            if not ways:
                continue
            # Two services at one address and port cannot be told apart: the first by name has it.
            free = [each for each in called_at(view, client, key, port) if (each, port.port) not in taken]
            taken.update((each, port.port) for each in free)
            if free:
                found.append(
                    OutboundService(key, port.port, protocol_of(view, key, port), ways, addresses=tuple(free))
                )
    return tuple(found)


def called_at(
    view: View, client: ServiceIdentity, key: ServiceKey, port: ServicePort
) -> tuple[IpAddress, ...]:
    """Return the addresses at which a service is called: its own, its virtual one, or its endpoints'.

    A headless service is called at the endpoints that the client may call; at all of them where a split
    says who answers.
    """
    service = view.services[key]
    if not service.headless:
        address = service.cluster_ip or view.virtual_addresses.get(key)
        return () if address is None else (address,)
    if splits.in_force(view, key, protocol_of(view, key, port)):
        return tuple(sorted({each.address for each in endpoints(view, key, port)}))
    return tuple(sorted({each.address for each in admitted_endpoints(view, client, key, port)}))


def _explicit(view: View, group: GroupKey, interception: Explicit) -> tuple[OutboundService, ...]:
    conflicts = view.conflicts.get(group.workload, ()) if group.workload else ()
    refused = {each.refused.index for each in conflicts}
    listen: dict[tuple[ServiceKey, Port], list[SocketAddress]] = {}
    for index, upstream in enumerate(sorted(interception.upstreams)):
        if index not in refused:
            where = SocketAddress(upstream.local_address, upstream.local_port)
            listen.setdefault((upstream.service, upstream.service_port), []).append(where)
    found: list[OutboundService] = []
    for (key, number), where_listening in sorted(listen.items()):
        service = view.services.get(key)
        port = service.port(number) if service is not None else None
        ways = routes(view, group.identity, key, port) if port is not None else ()
        if port is not None and ways:
            protocol = protocol_of(view, key, port)
            found.append(OutboundService(key, number, protocol, ways, listen=tuple(where_listening)))
    return tuple(found)


def _itself(
    view: View, client: ServiceIdentity, key: ServiceKey, port: ServicePort
) -> tuple[WeightedBackend, ...]:
    # In permissive mode a service that nobody is behind is there all the same, and answers 503.
    shown = view.config.permissive or _reaches(view, client, key, port)
    return (WeightedBackend(key, str(port.target_port), 1),) if shown else ()


def _shares(
    view: View, client: ServiceIdentity, split: TrafficSplit, port: ServicePort
) -> tuple[WeightedBackend, ...]:
    """Return the shares of a split that a client may call; none where their weights are all zero."""
    shares: list[WeightedBackend] = []
    for key, weight in splits.known_weights(view, split).items():
        backend_port = splits.backend_port(port, view.services[key])
        if backend_port is not None and _reaches(view, client, key, backend_port):
            shares.append(WeightedBackend(key, str(backend_port.target_port), weight))
    return tuple(shares) if any(each.weight for each in shares) else ()


def _reaches(view: View, client: ServiceIdentity, key: ServiceKey, port: ServicePort) -> bool:
    return bool(admitted_endpoints(view, client, key, port))
