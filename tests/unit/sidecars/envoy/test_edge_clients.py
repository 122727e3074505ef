"""Envoy's resources for the settings of gateways' clients; a change makes only the concerned ones again."""

from dataclasses import replace

from google.protobuf import any_pb2

from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import group_of
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.policies.client_traffic import ClientRates, ClientTrafficPolicy, PortSettings
from meshwright.mesh.policies.limits import RateLimit, RateLimits, RateUnit
from meshwright.mesh.policies.rate_services import (
    CountedRequests,
    GenericKey,
    RateLimitService,
    RemoteAddress,
)
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from tests.meshes import gateway as g
from tests.meshes.resources import resources
from tests.unit.catalog.policy.test_edge import EDGE, MESH, TO_V1
from xds.protocol.resources.resource import CLUSTER, LISTENER, ROUTE, Resource, TypeUrl

ASKED = RateLimitService(HostPort("limiter.example", 8081), "edge")
COUNTED = CountedRequests(ASKED, ((RemoteAddress(),),))


def made(*policies: ClientTrafficPolicy) -> dict[tuple[TypeUrl, str], Resource]:
    """Return the resources of the gateway's proxy by type and name."""
    view = g.view(*MESH, g.gateway("edge"), g.http_route("r", TO_V1, parents=(g.at("edge"),)), *policies)
    found = resources(proxy_policy(view, group_of(view, EDGE)))
    return {(resource.type_url, resource.name): resource for resource in found}


def counting(counted: CountedRequests, **fields: RateLimit) -> ClientTrafficPolicy:
    """Make a policy with a rate limit service."""
    return g.client_policy("p", rates=ClientRates(RateLimits(counted_requests=counted), **fields))


def changed(before: ClientTrafficPolicy, after: ClientTrafficPolicy) -> set[TypeUrl]:
    """Return the types of the resources that differ."""
    old, new = made(before), made(after)
    assert set(old) == set(new)
    return {key[0] for key, resource in new.items() if old[key].version != resource.version}


def test_descriptors_change_the_routes_alone() -> None:
    """Connections stay open: a changed listener would drain them."""
    other = replace(COUNTED, descriptors=((GenericKey("a", "b"),),))
    assert changed(counting(COUNTED), counting(other)) == {ROUTE}


def test_amounts_and_limits_change_the_listener_alone() -> None:
    """Their filters are in it."""
    rates = [RateLimit(number, RateUnit.MINUTE) for number in (1, 2)]
    assert changed(*(counting(COUNTED, per_client=rate) for rate in rates)) == {LISTENER}
    limits = [g.client_policy("p", connections=number) for number in (1, 2)]
    assert changed(*limits) == {LISTENER}


def test_rate_limit_service_has_a_cluster() -> None:
    """Without one Envoy would reject the listener."""
    assert {key for key in made(counting(COUNTED)) if key not in made()} == {
        (CLUSTER, "envoy-rate-limit-cluster|limiter.example:8081")
    }


def test_filters_are_in_the_order_of_their_work() -> None:
    """The header of the PROXY protocol, connections, and then rates before routes."""
    limits = RateLimits(requests=RateLimit(1, RateUnit.HOUR), counted_requests=COUNTED)
    policy = g.client_policy(
        "p",
        port=PortSettings(proxy_protocol=True),
        connections=1,
        rates=ClientRates(limits, RateLimit(1, RateUnit.HOUR)),
    )
    (listener,) = (item for key, item in made(policy).items() if key[0] == LISTENER)
    message = listener_pb2.Listener.FromString(any_pb2.Any.FromString(listener.body).value)
    (chain,) = message.filter_chains
    manager = hcm_pb2.HttpConnectionManager.FromString(chain.filters[-1].typed_config.value)
    assert (
        [item.name.rpartition(".filters.")[2] for item in message.listener_filters],
        [item.name.rpartition(".filters.")[2] for item in chain.filters],
        [item.name.rpartition(".filters.")[2] for item in manager.http_filters],
    ) == (
        ["listener.proxy_protocol"],
        ["network.connection_limit", "network.http_connection_manager"],
        [
            "http.grpc_stats",
            "http.local_ratelimit.client",
            "http.local_ratelimit.requests",
            "http.ratelimit",
            "http.router",
        ],
    )
