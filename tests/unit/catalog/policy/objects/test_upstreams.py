"""Tests of UpstreamPolicies: the endpoints near a caller, and the order of the others."""

from dataclasses import replace

import pytest
from google.protobuf.any_pb2 import Any

from catalog.explain import explain
from catalog.oracle.request.request import Request
from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.destinations import CallerLocality, DestinationEndpoint, ServiceDestination
from catalog.relations.groups import groups
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.policies.upstreams import LocalityPreference, LocalityScope, UpstreamPolicy, prefix
from meshwright.mesh.service import Protocol
from meshwright.mesh.workload import Workload
from meshwright.sidecars.envoy.clusters import endpoints
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from tests.meshes import values as a
from xds.protocol.resources.resource import ENDPOINT

B = ServiceName("b")
SHOP = UpstreamPolicy(
    a.policy_key("near"), a.service_key("shop"), nearest=LocalityPreference(LocalityScope.ZONE)
)
HERE, NEXT, FAR, UNKNOWN = "eu/a", "eu/b/rack-1", "us/a", ""


def at(name: str, address: str, locality: str, account: str = "") -> Workload:
    """Make a workload in a locality."""
    return replace(a.workload(name, address, account=account or name), locality=locality)


MESH = (
    a.service("shop"),
    a.service("bank"),
    a.workload("bank", "10.0.1.1"),
    *(at(f"shop-{each}", f"10.0.0.{each}", place, "shop") for each, place in enumerate((HERE, NEXT, FAR), 1)),
)
"""Everybody may call everybody."""


def near(view: View, name: str) -> dict[str, CallerLocality | None]:
    """Return the caller's locality by the service that it calls."""
    (group,) = (
        proxy_group
        for proxy_group, proxies in groups(view).items()
        if any(str(one).startswith(name) for one in proxies)
    )
    result = (
        destination for part in proxy_policy(view, group).reachable for destination in part.destinations
    )
    return {item.service.name: item.near for item in result if isinstance(item, ServiceDestination)}


def test_only_a_caller_with_a_locality_prefers_near_endpoints() -> None:
    """The preference applies to the service of the policy; a caller of unknown locality has none."""
    callers = at("buyer", "10.0.2.1", HERE), at("lost", "10.0.2.2", UNKNOWN)
    view = a.view(*MESH, *callers, SHOP, MeshConfig(permissive=True))
    assert near(view, "buyer") == {"shop": CallerLocality("eu/a", LocalityScope.ZONE), "bank": None}
    assert near(view, "lost") == {"shop": None, "bank": None}


def test_localities_split_groups_only_if_a_policy_prefers_near_endpoints() -> None:
    """Two workloads of one service in two zones are one group until a policy uses their zones."""
    places = enumerate((HERE, FAR))
    callers = [replace(at(f"b{each}", f"10.0.2.{each}", place, "b"), service=B) for each, place in places]
    permissive = MeshConfig(permissive=True)
    grouped = [
        sum(group.identity == a.identity("b") for group in groups(a.view(*MESH, *callers, permissive, *more)))
        for more in ((), (SHOP,))
    ]
    assert grouped == [1, 2]


@pytest.mark.parametrize(
    ("policy", "protocol", "expected"),
    [
        (SHOP, Protocol.HTTP, True),
        (
            replace(SHOP, nearest=LocalityPreference(LocalityScope.ZONE, fails_over=False)),
            Protocol.HTTP,
            False,
        ),
        (replace(SHOP, nearest=None), Protocol.HTTP, False),
        (SHOP, Protocol.TCP, False),
    ],
)
def test_retries_fail_over_only_with_a_preference_and_http(
    policy: UpstreamPolicy, protocol: Protocol, expected: bool
) -> None:
    """Without a preference there is only one priority, and Envoy cannot retry TCP connections elsewhere."""
    shop = a.service("shop", a.port(80, protocol=protocol))
    view = a.view(*MESH[1:], shop, at("buyer", "10.0.2.1", HERE), policy, MeshConfig(permissive=True))
    (group,) = (proxy_group for proxy_group in groups(view) if proxy_group.identity == a.identity("buyer"))
    called = [service for part in proxy_policy(view, group).reachable for service in part.services]
    assert {outbound_service.upstream: outbound_service.fails_over for outbound_service in called} == {
        a.service_key("shop"): expected,
        a.service_key("bank"): False,
    }


@pytest.mark.parametrize(
    ("locality", "within", "expected"),
    [
        ("eu/a/rack", LocalityScope.ZONE, "eu/a"),
        ("eu/a", LocalityScope.REGION, "eu"),
        ("/a", LocalityScope.ZONE, "/a"),
        ("/a", LocalityScope.REGION, ""),
        ("eu", LocalityScope.ZONE, ""),
        ("", LocalityScope.ZONE, ""),
    ],
)
def test_locality_prefix_is_the_region_or_region_and_zone(
    locality: str, within: LocalityScope, expected: str
) -> None:
    """A zone without a region is a place of its own."""
    assert prefix(locality, within) == expected


def priorities(near: CallerLocality | None, *localities: str) -> list[tuple[str, int]]:
    """Return the localities and priorities of an assignment with one endpoint in each locality."""
    there = tuple(
        DestinationEndpoint(IpAddress(f"10.0.0.{number}"), Port(80), locality)
        for number, locality in enumerate(localities, 1)
    )
    wanted = ServiceDestination(a.service_key("shop"), "80", True, "shop", (), there, near=near)
    cluster_load_assignment = endpoint_pb2.ClusterLoadAssignment()
    made = endpoints.assignment(wanted)
    assert made.type_url == ENDPOINT
    assert Any.FromString(made.body).Unpack(cluster_load_assignment)
    return [
        ("/".join(filter(None, (endpoint.locality.region, endpoint.locality.zone))), endpoint.priority)
        for endpoint in cluster_load_assignment.endpoints
    ]


def test_priorities_are_zone_then_region_then_other_places() -> None:
    """Priorities have no gaps. Without a preference, all endpoints have priority 0."""
    zone, region = CallerLocality("eu/a", LocalityScope.ZONE), CallerLocality("eu", LocalityScope.REGION)
    assert priorities(zone, HERE, NEXT, FAR, UNKNOWN) == [("", 2), ("eu/a", 0), ("eu/b", 1), ("us/a", 2)]
    assert priorities(zone, HERE, FAR) == [("eu/a", 0), ("us/a", 1)]
    assert priorities(zone, FAR) == [("us/a", 0)]
    assert priorities(region, HERE, NEXT, FAR) == [("eu/a", 0), ("eu/b", 0), ("us/a", 1)]
    assert priorities(None, HERE, FAR) == [("eu/a", 0), ("us/a", 0)]
    assert priorities(CallerLocality("/a", LocalityScope.ZONE), "/a", "/b") == [("a", 0), ("b", 1)]


def test_without_failover_only_near_endpoints_are_assigned() -> None:
    """The assignment is empty if no endpoint is near."""
    alone = CallerLocality("eu/a", LocalityScope.ZONE, fails_over=False)
    assert priorities(alone, HERE, NEXT, FAR) == [("eu/a", 0)]
    assert priorities(alone, NEXT, FAR) == []


def test_zone_of_an_endpoint_slice_is_the_callers_locality() -> None:
    """The zone in an EndpointSlice counts if the workload itself has no locality."""
    address = "10.0.2.1"
    endpoint_slice = EndpointSlice(
        "buyer", Namespace("default"), "s", (address,), (), zones=((address, "zone-1"),)
    )
    view = a.view(*MESH, at("buyer", "10.0.2.1", UNKNOWN), endpoint_slice, SHOP, MeshConfig(permissive=True))
    assert near(view, "buyer")["shop"] == CallerLocality("/zone-1", LocalityScope.ZONE)


def test_explanation_mentions_the_preference_for_near_endpoints() -> None:
    """A step reports that endpoints in the client's zone are preferred."""
    view = a.view(*MESH, at("buyer", "10.0.2.1", HERE), SHOP, MeshConfig(permissive=True))
    explanation = explain(view, Request(a.identity("buyer"), a.service_key("shop"), Port(80)))
    assert any("endpoints in the client's zone are preferred" in step.text for step in explanation.steps)
