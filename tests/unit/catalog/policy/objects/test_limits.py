"""Which UpstreamTrafficSetting is in force, and where it holds: by policy, by the oracle, in words."""

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
def test_the_names_of_a_service(host: str, *, counts: bool) -> None:
    """All by which every namespace calls it."""
    view = a.view(*MESH, setting("x", host))
    assert connection_limits(view, a.service_key("shop")) == (ONE if counts else ConnectionLimits())


def test_the_cluster_domain_is_the_setting_s() -> None:
    """As the names are by which it is called."""
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
def test_precedence(others: list[UpstreamTrafficSetting], expected: str) -> None:
    """The oldest, then the first by name; of another namespace none."""
    view = a.view(*MESH, setting("z", created="2026-01-01T00:00:00Z"), *others)
    found = setting_of(view, a.service_key("shop"))
    assert found is not None
    assert found.key.name == expected


def test_limits_stand_where_they_hold() -> None:
    """At once in the callers' destination, in a time at the port; nowhere else."""
    view = a.view(*MESH, setting("x", connections=TWO, rates=RATE))
    found = {str(group.primary.name): proxy_policy(view, group) for group in groups(view)}
    (destination,) = found["buyer"].service_destinations
    assert destination.limits == TWO
    assert [each.rates for each in found["shop"].inbound] == [RATE]
    assert found["buyer"].inbound == ()


def test_one_port_of_two_services() -> None:
    """The first setting that limits a rate, whichever service it is for; the callers' are each their own."""
    shared = a.service("again", app="shop")
    first = setting("first", "again.default", TWO, created="2026-01-01T00:00:00Z")
    view = a.view(*MESH, shared, first, setting("x", connections=ONE, rates=RATE))
    keys = (a.service_key("again"), a.service_key("shop"))
    assert rate_limits(view, keys) == RATE
    assert [connection_limits(view, each) for each in keys] == [TWO, ONE]


def test_requests_are_not_counted_where_none_are_seen() -> None:
    """Of a TCP port the connections alone are."""
    tcp = a.service("shop", a.port(90, protocol=a.TCP))
    view = a.view(tcp, *MESH[1:], setting("x", rates=OTHER_RATE))
    ports = [port for group in groups(view) for port in inbound_ports(view, group)]
    assert [each.rates for each in ports] == [RateLimits(OTHER_RATE.connections)]


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
    unique_by=lambda each: each.key,
)


@given(SETTINGS)
def test_policy_and_oracle_agree(settings: list[UpstreamTrafficSetting]) -> None:
    """Of each service, and of the port that two have."""
    view = a.view(*MESH[:1], a.service("store", app="shop"), *MESH[2:], *settings)
    keys = (a.service_key("shop"), a.service_key("store"))
    for key in keys:
        assert setting_for_callers(view, key) == setting_of(view, key)
    assert setting_at_place(view, Place(a.identity("shop"), Port(8080))) == counting(view, keys)


def _said(view: View, path: str = "/") -> list[str]:
    request = Request(a.identity("buyer"), a.service_key("shop"), Port(80), path=path)
    return [each.text for each in explain(view, request).steps if "UpstreamTrafficSetting" in each.text]


def test_what_an_explanation_says() -> None:
    """The limits that a request meets; of routes the one that counts it."""
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


def test_what_an_explanation_says_of_a_service_that_counts() -> None:
    """That it is asked, about what, and what its silence means; its answer nobody knows."""
    view = a.view(*MESH, setting("x", connections=ConnectionLimits(), rates=COUNTED))
    asks = "The server's sidecar asks limiter.shop.svc:8081 about each"
    by = "(domain shop), and the rate limit service may refuse it. Without an answer it"
    connections = f"{asks} connection {by} is refused"
    assert _said(view) == [
        f"{each} (UpstreamTrafficSetting default/x)."
        for each in (
            connections,
            f"{asks} request {by} passes",
        )
    ]
    assert _said(view, "/a/b")[1].startswith(f"{asks} request for /a.* ")


def test_a_service_that_counts_where_no_requests_are_seen() -> None:
    """Of a TCP port it counts connections."""
    view = a.view(
        a.service("shop", a.port(90, protocol=a.TCP)),
        *MESH[1:],
        setting("x", connections=ConnectionLimits(), rates=COUNTED),
    )
    ports = [port for group in groups(view) for port in inbound_ports(view, group)]
    assert [each.rates for each in ports] == [RateLimits(counted_connections=COUNTED.counted_connections)]
