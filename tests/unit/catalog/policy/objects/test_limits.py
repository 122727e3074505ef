"""Tests of UpstreamTrafficSettings: the one in force by policy, oracle and explanation."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.explain import explain
from catalog.oracle.request.request import Request
from catalog.oracle.service_policies import setting_at_place, setting_for_callers
from catalog.oracle.targets import Place
from catalog.policy.group_policy import proxy_policy
from catalog.policy.inbound import inbound_ports
from catalog.policy.objects.limits import connection_limits, counting, rate_limits, setting_of
from catalog.relations.groups import groups
from catalog.store.view import MeshSettings, View
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import Port
from meshwright.mesh.policies.limits import (
    ConnectionLimits,
    RateLimit,
    RateLimits,
    RateUnit,
    RouteRate,
    UpstreamTrafficSetting,
)
from meshwright.mesh.policies.rate_services import (
    CountedConnections,
    CountedRequests,
    GenericKey,
    RateLimitService,
    RemoteAddress,
)
from tests.meshes import values as a

ONE = ConnectionLimits(connections=1, connect_timeout=timedelta(seconds=2))
TWO = ConnectionLimits(requests=2, pending_requests=3)
RATE = RateLimits(requests=RateLimit(3, RateUnit.MINUTE, 1, 503))
OTHER_RATE = RateLimits(
    RateLimit(5, RateUnit.SECOND), routes=(RouteRate("/a.*", RateLimit(1, RateUnit.HOUR)),)
)
MESH = (
    a.service("shop"),
    a.service("store"),
    a.workload("shop", "10.0.0.1", app="shop"),
    a.workload("buyer", "10.0.0.2"),
    a.target("t", "buyer", "shop", a.http("all")),
    a.route_group("all", a.match("all", ".*")),
)


def setting(
    name: str,
    host: str = "shop.default",
    connections: ConnectionLimits = ONE,
    rates: RateLimits | None = None,
    *,
    namespace: str = "default",
    created: str = "",
) -> UpstreamTrafficSetting:
    """Make a setting."""
    key = a.policy_key(name, namespace)
    return UpstreamTrafficSetting(key, host, connections, rates or RateLimits(), created)


@pytest.mark.parametrize(
    ("host", "counts"),
    [
        ("shop.default", True),
        ("shop.default.svc", True),
        ("shop.default.svc.cluster.local", True),
        ("shop.default.svc.cluster.other", False),
        ("shop.other", False),
        ("store.default", False),
    ],
)
def test_setting_applies_to_each_full_name_of_its_service(host: str, *, counts: bool) -> None:
    """Every name that is valid in all namespaces may be the host of a setting."""
    view = a.view(*MESH, setting("x", host))
    assert connection_limits(view, a.service_key("shop")) == (ONE if counts else ConnectionLimits())


def test_setting_uses_the_configured_cluster_domain() -> None:
    """The names of services depend on `cluster_domain`, and so does the host of a setting."""
    settings = MeshSettings(cluster_domain="corp.example")
    view = a.view(*MESH, setting("x", "shop.default.svc.corp.example"), settings=settings)
    assert connection_limits(view, a.service_key("shop")) == ONE


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([setting("a", created="2026-01-02T00:00:00Z")], "z"),
        ([setting("a", created="2025-01-02T00:00:00Z")], "a"),
        ([setting("a")], "z"),
        ([setting("a", created="2025-01-02T00:00:00Z", namespace="other")], "z"),
        ([setting("a", "shop.default.svc", created="2026-01-01T00:00:00Z")], "a"),
    ],
)
def test_oldest_setting_of_the_services_namespace_is_in_force(
    others: list[UpstreamTrafficSetting], expected: str
) -> None:
    """Without an age, the first name counts; a setting of another namespace has no effect."""
    view = a.view(*MESH, setting("z", created="2026-01-01T00:00:00Z"), *others)
    upstream_traffic_setting = setting_of(view, a.service_key("shop"))
    assert upstream_traffic_setting is not None
    assert upstream_traffic_setting.key.name == expected


def test_limits_are_in_the_callers_destination_and_rates_at_the_port() -> None:
    """Limits of concurrency apply at the client, and limits of rates at the server."""
    view = a.view(*MESH, setting("x", connections=TWO, rates=RATE))
    proxy_policies = {str(group.primary.name): proxy_policy(view, group) for group in groups(view)}
    (destination,) = proxy_policies["buyer"].service_destinations
    assert destination.limits == TWO
    assert [port.rates for port in proxy_policies["shop"].inbound] == [RATE]
    assert proxy_policies["buyer"].inbound == ()


def test_port_of_two_services_has_the_first_setting_with_rates() -> None:
    """Each caller's limits are those of the service that it calls."""
    shared = a.service("again", app="shop")
    first = setting("first", "again.default", TWO, created="2026-01-01T00:00:00Z")
    view = a.view(*MESH, shared, first, setting("x", connections=ONE, rates=RATE))
    keys = (a.service_key("again"), a.service_key("shop"))
    assert rate_limits(view, keys) == RATE
    assert [connection_limits(view, key) for key in keys] == [TWO, ONE]


def test_request_rates_have_no_effect_at_a_tcp_port() -> None:
    """Only connections are counted, because sidecars see no requests there."""
    tcp = a.service("shop", a.port(90, protocol=a.TCP))
    view = a.view(tcp, *MESH[1:], setting("x", rates=OTHER_RATE))
    ports = [port for group in groups(view) for port in inbound_ports(view, group)]
    assert [inbound_port.rates for inbound_port in ports] == [RateLimits(OTHER_RATE.connections)]


NAMES = st.sampled_from(["a", "b"])
SETTINGS = st.lists(
    st.builds(
        setting,
        NAMES,
        st.sampled_from(["shop.default", "shop.default.svc", "store.default", "shop.other"]),
        st.sampled_from([ONE, TWO]),
        st.sampled_from([None, RATE, OTHER_RATE]),
        namespace=st.sampled_from(["default", "other"]),
        created=st.sampled_from(["", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
    ),
    max_size=4,
    unique_by=lambda upstream_traffic_setting: upstream_traffic_setting.key,
)


@given(SETTINGS)
def test_policy_and_oracle_agree_on_settings(settings: list[UpstreamTrafficSetting]) -> None:
    """They agree for each service, and for the port that two services share."""
    view = a.view(*MESH[:1], a.service("store", app="shop"), *MESH[2:], *settings)
    keys = (a.service_key("shop"), a.service_key("store"))
    for key in keys:
        assert setting_for_callers(view, key) == setting_of(view, key)
    assert setting_at_place(view, Place(a.identity("shop"), Port(8080))) == counting(view, keys)


def _said(view: View, path: str = "/") -> list[str]:
    request = Request(a.identity("buyer"), a.service_key("shop"), Port(80), path=path)
    return [step.text for step in explain(view, request).steps if "UpstreamTrafficSetting" in step.text]


def test_explanation_lists_the_limits_of_a_request() -> None:
    """If a rate of a route applies, the general rate is not listed."""
    rates = RateLimits(OTHER_RATE.connections, RATE.requests, OTHER_RATE.routes)
    view = a.view(*MESH, setting("x", connections=TWO, rates=rates))
    by = "(UpstreamTrafficSetting default/x)."
    at_once = (
        "The client's sidecar admits at most 3 requests that wait for a connection, 2 requests at "
        f"once to Service default/shop, and refuses more {by}"
    )
    connections = (
        f"The server's sidecar admits 5 connections a second, and closes connections above this rate {by}"
    )
    every = (
        "The server's sidecar admits 3 requests a minute and 1 more at once, and answers 503 "
        f"to requests above this rate {by}"
    )
    route = (
        "The server's sidecar admits 1 requests for /a.* a hour, and answers 429 to requests "
        f"above this rate {by}"
    )
    assert _said(view) == [at_once, connections, every]
    assert _said(view, "/a/b") == [at_once, connections, route]
    assert _said(a.view(*MESH)) == []


ASKED = RateLimitService(HostPort("limiter.shop.svc", 8081), "shop")
COUNTED = RateLimits(
    counted_connections=CountedConnections(replace(ASKED, fails_open=False), ((("a", "b"),),)),
    counted_requests=CountedRequests(ASKED, ((RemoteAddress(),),)),
    routes=(RouteRate("/a.*", None, ((GenericKey("a", "b"),),)),),
)


def test_explanation_mentions_the_rate_limit_service() -> None:
    """The steps give its address, domain and effect without an answer, because its answers are unknown."""
    view = a.view(*MESH, setting("x", connections=ConnectionLimits(), rates=COUNTED))
    asks = "The server's sidecar asks limiter.shop.svc:8081 about each"
    by = "(domain shop), and the rate limit service may refuse it. Without an answer it"
    connections = f"{asks} connection {by} is refused"
    assert _said(view) == [
        f"{item} (UpstreamTrafficSetting default/x)."
        for item in (
            connections,
            f"{asks} request {by} passes",
        )
    ]
    assert _said(view, "/a/b")[1].startswith(f"{asks} request for /a.* ")


def test_rate_limit_service_counts_only_connections_at_a_tcp_port() -> None:
    """Sidecars see no requests at a TCP port."""
    view = a.view(
        a.service("shop", a.port(90, protocol=a.TCP)),
        *MESH[1:],
        setting("x", connections=ConnectionLimits(), rates=COUNTED),
    )
    ports = [port for group in groups(view) for port in inbound_ports(view, group)]
    assert [inbound_port.rates for inbound_port in ports] == [
        RateLimits(counted_connections=COUNTED.counted_connections)
    ]
