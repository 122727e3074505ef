"""Endpoints (EDS): the addresses of a destination, by locality."""

from collections.abc import Iterable

from google.protobuf.wrappers_pb2 import UInt32Value

from catalog.policy.values.destinations import CallerLocality, DestinationEndpoint, ServiceDestination
from catalog.policy.values.interception import SocketAddress
from meshwright.mesh.policies.upstreams import LocalityScope, prefix
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import socket_address
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.endpoint.v3 import endpoint_components_pb2, endpoint_pb2
from xds.protocol.resources.resource import Resource, encode


def assignment(wanted: ServiceDestination) -> Resource:
    """Return the load assignment of a destination; without endpoints the assignment is empty.

    A missing assignment would make Envoy keep its endpoints.
    """
    by_locality: dict[str, list[DestinationEndpoint]] = {}
    for destination_endpoint in sorted(_kept(wanted)):
        by_locality.setdefault(destination_endpoint.locality, []).append(destination_endpoint)
    ranks = _ranks(by_locality, wanted.near)
    message = endpoint_pb2.ClusterLoadAssignment(
        cluster_name=names.cluster(wanted),
        endpoints=[
            endpoint_components_pb2.LocalityLbEndpoints(
                locality=_locality(locality),
                lb_endpoints=[_endpoint(destination_endpoint) for destination_endpoint in endpoints],
                priority=ranks[locality],
            )
            for locality, endpoints in sorted(by_locality.items())
        ],
    )
    return encode(message)


def _kept(wanted: ServiceDestination) -> Iterable[DestinationEndpoint]:
    """Return the endpoints of a destination to use: all, or only near ones if failover is off."""
    near = wanted.near
    if near is None or near.fails_over:
        return wanted.endpoints
    return [
        destination_endpoint
        for destination_endpoint in wanted.endpoints
        if prefix(destination_endpoint.locality, near.within) == near.place
    ]


def _ranks(localities: Iterable[str], near: CallerLocality | None) -> dict[str, int]:
    """Return the priority of each locality: the caller's own first, then the same region, then all others.

    Envoy requires priorities without gaps, so unused ranks are skipped.
    """
    far = {locality: _distance(locality, near) for locality in localities}
    ranks = sorted(set(far.values()))
    return {item: ranks.index(distance) for item, distance in far.items()}


def _distance(locality: str, near: CallerLocality | None) -> int:
    if near is None or prefix(locality, near.within) == near.place:
        return 0
    region = prefix(near.place, LocalityScope.REGION)
    return 1 if region and prefix(locality, LocalityScope.REGION) == region else 2


def _endpoint(destination_endpoint: DestinationEndpoint) -> endpoint_components_pb2.LbEndpoint:
    # Envoy's default is 1, so the usual weight need not be sent for each endpoint.
    weight = None if destination_endpoint.weight == 1 else UInt32Value(value=destination_endpoint.weight)
    places = [
        SocketAddress(address, destination_endpoint.port)
        for address in (destination_endpoint.address, *destination_endpoint.other_addresses)
    ]
    return endpoint_components_pb2.LbEndpoint(endpoint=endpoint(*places), load_balancing_weight=weight)


def endpoint(first: SocketAddress, *others: SocketAddress) -> endpoint_components_pb2.Endpoint:
    """Return one endpoint. Envoy tries the addresses in turn until one connects (RFC 8305).

    Therefore all callers share the same endpoint, and each connects by a usable address family.
    """
    kind = endpoint_components_pb2.Endpoint
    return kind(
        address=socket_address(first),
        additional_addresses=[kind.AdditionalAddress(address=socket_address(address)) for address in others],
    )


def _locality(locality: str) -> base_pb2.Locality | None:
    """Parse `region/zone/sub-zone`; missing parts are empty."""
    if not locality:
        return None
    region, zone, sub_zone = [*locality.split("/", 2), "", ""][:3]
    return base_pb2.Locality(region=region, zone=zone, sub_zone=sub_zone)
