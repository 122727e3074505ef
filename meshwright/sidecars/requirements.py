"""Capabilities that a policy needs and that not every kind of proxy has. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.edge import EdgePort
from catalog.policy.values.inbound import InboundPort
from catalog.policy.values.interception import InterceptionKind
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy
from catalog.policy.values.route_table import AppliedRoute, AppliedRule, AppliedSplit, RouteSource
from meshwright.mesh.kinds import (
    EGRESS,
    EXTERNAL_AUTHORIZATION,
    MESH_CONFIG,
    RETRY,
    SERVICE,
    TELEMETRY,
    UPSTREAM_POLICY,
    UPSTREAM_TRAFFIC_SETTING,
    WORKLOAD,
    Kind,
)
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimits
from meshwright.mesh.policies.upstreams import BalancingAlgorithm
from meshwright.mesh.service import ExternalHost, Protocol
from meshwright.sidecars.contract.driver import Capability


@dataclass(frozen=True, slots=True)
class Requirement:
    """A capability, and the cause of the need.

    The cause `by` is an object, or a host outside of the mesh that is called. It is a kind alone for the
    workload's own manifest (Workload), for MeshConfig, and where the policy no longer has the names of the
    objects behind it.
    """

    capability: Capability
    by: ObjectKey | Kind | ExternalHost


def requirements(policy: ProxyPolicy) -> tuple[Requirement, ...]:
    """Return the capabilities that a policy needs, with causes, sorted and without duplicates."""
    return tuple(sorted(set(_requirements(policy)), key=str_order))


def str_order(requirement: Requirement) -> tuple[str, str]:
    """Return a sort key for requirements, because their causes have types that cannot be compared."""
    return (requirement.capability.value, str(requirement.by))


_INTERCEPTION: Final[Mapping[InterceptionKind, Capability]] = MappingProxyType(
    {
        InterceptionKind.TRANSPARENT: Capability.TRANSPARENT_INTERCEPTION,
        InterceptionKind.EXPLICIT: Capability.EXPLICIT_INTERCEPTION,
        InterceptionKind.EDGE: Capability.GATEWAYS,
    }
)


def _requirements(policy: ProxyPolicy) -> Iterator[Requirement]:
    yield Requirement(_INTERCEPTION[policy.interception], WORKLOAD)
    if policy.passthrough and policy.interception is InterceptionKind.TRANSPARENT:
        yield Requirement(Capability.EGRESS_PASSTHROUGH, MESH_CONFIG)
    if policy.tracing is not None:
        yield Requirement(Capability.TRACING, MESH_CONFIG)
    if policy.logs.by is not None:
        yield Requirement(Capability.ACCESS_LOGS, ObjectKey.from_name(TELEMETRY, policy.logs.by))
    for port in policy.inbound:
        yield from _of_inbound(port)
    for service in policy.outbound:
        yield from _of_outbound(service)
    for edge_port in policy.edge:
        yield from _of_edge(edge_port)
    for destination in policy.service_destinations:
        yield from _of_destination(destination)
    for key in {object_key for out in policy.outside for object_key in out.by}:
        yield Requirement(Capability.EGRESS, ObjectKey.from_name(EGRESS, key))


def _of_inbound(port: InboundPort) -> Iterator[Requirement]:
    if port.rates != RateLimits():
        yield Requirement(Capability.LIMITS, UPSTREAM_TRAFFIC_SETTING)
    if not port.protocol.is_http:
        for service in port.services:
            yield Requirement(Capability.TCP_ROUTES, ObjectKey.from_name(SERVICE, service))
    if port.asked is not None:
        by = (
            MESH_CONFIG
            if port.asked.by is None
            else ObjectKey.from_name(EXTERNAL_AUTHORIZATION, port.asked.by)
        )
        yield Requirement(Capability.EXTERNAL_AUTHORIZATION, by)
    for rule in port.access.rules:
        if rule.matches is not None:
            yield Requirement(Capability.HTTP_ROUTES, rule.by)
        if rule.from_outside:
            yield Requirement(Capability.CALLERS_FROM_OUTSIDE, rule.by)


def _of_destination(destination: ServiceDestination) -> Iterator[Requirement]:
    if destination.limits != ConnectionLimits():
        yield Requirement(Capability.LIMITS, UPSTREAM_TRAFFIC_SETTING)
    chosen = destination.balancing is not BalancingAlgorithm.ROUND_ROBIN
    if chosen or destination.ejecting is not None or destination.checking is not None:
        yield Requirement(Capability.UPSTREAM_POLICIES, UPSTREAM_POLICY)


def _of_outbound(service: OutboundService) -> Iterator[Requirement]:
    match service.upstream:
        case ExternalHost() as host:
            yield Requirement(Capability.EXTERNAL_DESTINATIONS, host)
        case key if not service.protocol.is_http:
            yield Requirement(Capability.TCP_ROUTES, ObjectKey.from_name(SERVICE, key))
        case _:
            pass
    if service.retries is not None:
        yield Requirement(Capability.RETRIES, RETRY)
    for entry in service.table:
        for source in entry.provenance:
            yield from _of_source(source, service.protocol)


def _of_edge(port: EdgePort) -> Iterator[Requirement]:
    for chain in port.chains:
        protocol = Protocol.TCP if chain.hosts is None else Protocol.HTTP
        for entry in chain.entries:
            for source in entry.provenance:
                yield from _of_source(source, protocol)


def _of_source(source: RouteSource, protocol: Protocol) -> Iterator[Requirement]:
    by = source.part.object_key
    match source.part:
        case AppliedRule():
            yield Requirement(Capability.ROUTE_POLICIES, by)
        case AppliedRoute():
            yield Requirement(Capability.GATEWAY_ROUTES, by)
        case AppliedSplit():
            splitting = Capability.TRAFFIC_SPLITS if protocol.is_http else Capability.TCP_SPLITS
            yield Requirement(splitting, by)
            if source.match is not None:
                yield Requirement(Capability.HTTP_ROUTES, by)
