"""Destinations of routes: the identities allowed to answer there, and their endpoints.

Endpoints change far more often than the rest of a destination. They are kept separate, so readers of the rest
are not recomputed.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from catalog.policy.backend_tls import backend_tls
from catalog.policy.objects.limits import connection_limits
from catalog.policy.objects.upstreams import policy_of
from catalog.policy.outbound import answering, permitted, ports_in_plain
from catalog.policy.values.destinations import DestinationEndpoint, ServiceDestination
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ReachableServices
from catalog.policy.values.route_actions import HttpVersion, WeightedBackend
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.backends.readiness import taking_traffic
from catalog.relations.permissive import relevant_client
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.upstreams import BalancingAlgorithm, HealthCheck, UpstreamPolicy
from meshwright.mesh.service import Protocol, ServiceKey, ServicePort
from meshwright.mesh.values.cached_hash import SharedTuple

Answering = tuple[tuple[ServicePort, tuple[tuple[ServiceIdentity | None, Port], ...]], ...]
"""Identities allowed to answer at the ports of a service, each with the port of the workload.

None stands for workloads without a sidecar.
"""


def with_destinations(
    view: View, client: ServiceIdentity | None, services: Iterable[OutboundService]
) -> ReachableServices:
    """Return the sorted services that a client may call, with the destinations of their routes."""
    outbound_services = tuple(services)
    return ReachableServices.from_sorted(outbound_services, destinations(view, client, outbound_services))


def destinations(
    view: View, client: ServiceIdentity | None, services: Iterable[OutboundService]
) -> SharedTuple[ServiceDestination]:
    """Return the destinations of the services' routes, sorted, without endpoints.

    Identities are present before their endpoints are admitted to traffic, so admission changes no cluster.
    """
    called = ((backend, service.protocol.is_http) for service in services for backend in service.backends())
    return destinations_of(view, client, called)


def destinations_of(
    view: View, client: ServiceIdentity | None, backends: Iterable[tuple[WeightedBackend, bool]]
) -> SharedTuple[ServiceDestination]:
    """Return the destinations of backends, each with whether it gets requests, sorted, without endpoints."""
    named: dict[tuple[ServiceKey, str, bool, HttpVersion, PolicyKey | None], bool] = {}
    for backend, is_http in backends:
        if isinstance(backend.upstream, ServiceKey):
            place = (backend.upstream, backend.target_port, backend.as_called, backend.version, backend.tls)
            # One destination per place: HTTP if any service with a route to it speaks HTTP.
            named[place] = named.get(place, False) or is_http
    return SharedTuple(
        _open_to_all(view, key, target_port, is_http, as_called, version, tls)
        if (asked := relevant_client(view, client, key)) is None
        else _destination(view, asked, key, target_port, is_http, as_called, version, tls)
        for (key, target_port, as_called, version, tls), is_http in sorted(named.items(), key=_order)
    )


@derived
def _open_to_all(
    view: View,
    key: ServiceKey,
    target_port: str,
    is_http: bool,
    as_called: bool,
    version: HttpVersion,
    tls: PolicyKey | None,
) -> ServiceDestination:
    # A derived value without the client in its key, so all clients share it.
    return _destination(view, None, key, target_port, is_http, as_called, version, tls)


def _destination(
    view: View,
    client: ServiceIdentity | None,
    key: ServiceKey,
    target_port: str,
    is_http: bool,
    as_called: bool,
    version: HttpVersion,
    tls: PolicyKey | None,
) -> ServiceDestination:
    # The called endpoint answers, so there is no choice for an UpstreamPolicy to change.
    policy = None if as_called else policy_of(view, key)
    return ServiceDestination(
        service=key,
        target_port=target_port,
        is_http=is_http,
        server_name=key.fqdn(view.settings.cluster_domain),
        identities=_identities(view, client, key, target_port),
        endpoints=(),
        as_called=as_called,
        caller=client,
        limits=connection_limits(view, key),
        ejecting=None if policy is None else policy.ejecting,
        balancing=BalancingAlgorithm.ROUND_ROBIN if policy is None else policy.load.balancing,
        checking=None if policy is None else _checking(view, policy, target_port),
        version=version,
        tls=None if tls is None else backend_tls(view, tls),
    )


def _order(
    item: tuple[tuple[ServiceKey, str, bool, HttpVersion, PolicyKey | None], bool],
) -> tuple[Any, ...]:
    *place, tls = item[0]
    return (*place, "" if tls is None else str(tls))


def _checking(view: View, policy: UpstreamPolicy, target_port: str) -> HealthCheck | None:
    """Return the health check of a target port; with requests only if the port has this protocol alone."""
    health_check, key = policy.checking, policy.service
    if health_check is None or health_check.request is None:
        return health_check
    spoken = {protocol_of(view, key, port) for port in _ports(view, key, target_port)}
    return health_check if spoken == {health_check_protocol(health_check)} else None


def health_check_protocol(health_check: HealthCheck) -> Protocol:
    """Return the protocol that a port must have for a health check with requests: HTTP or gRPC."""
    return Protocol.HTTP if health_check.grpc is None else Protocol.GRPC


def allowed_answering(view: View, destination: ServiceDestination) -> Answering:
    """Return the identities allowed to answer the destination's caller.

    Empty if the called endpoint itself answers.
    """
    if destination.as_called:
        return ()
    if destination.plain:
        key = destination.service
        return tuple(
            (port, ports_in_plain(view, key, port)) for port in _ports(view, key, destination.target_port)
        )
    return answering_at(view, destination.caller, destination.service, destination.target_port)


def answering_at(view: View, client: ServiceIdentity | None, key: ServiceKey, target_port: str) -> Answering:
    """Return, for each service port with this target port, the identities that may answer a client."""
    return tuple((port, permitted(view, client, key, port)) for port in _ports(view, key, target_port))


@derived
def endpoints_of(view: View, key: ServiceKey, answering: Answering) -> tuple[DestinationEndpoint, ...]:
    """Return the endpoints with traffic and permission to answer, sorted.

    Clients with the same permissions share one value, so a moved endpoint is handled once for all of them.
    """
    endpoints = {
        DestinationEndpoint(
            endpoint.address, endpoint.port, endpoint.locality, endpoint.weight, endpoint.other_addresses
        )
        for port, may_answer in answering
        for endpoint in taking_traffic(view, key, port)
        if (endpoint.identity, endpoint.port) in may_answer
    }
    return tuple(sorted(endpoints))


def with_endpoints(view: View, destination: ServiceDestination) -> ServiceDestination:
    """Return a destination with the current endpoints of its service."""
    return replace(
        destination, endpoints=endpoints_of(view, destination.service, allowed_answering(view, destination))
    )


def _identities(
    view: View, client: ServiceIdentity | None, key: ServiceKey, target_port: str
) -> tuple[ServiceIdentity, ...]:
    ports = _ports(view, key, target_port)
    return tuple(sorted({identity for port in ports for identity in answering(view, client, key, port)}))


def _ports(view: View, key: ServiceKey, target_port: str) -> tuple[ServicePort, ...]:
    return view.services[key].ports_leading_to(target_port)
