"""Tests of health checks: the endpoints that are checked, and the problems of impossible checks."""

from dataclasses import replace

import pytest

from catalog.explain import explain
from catalog.lint.problems import problems
from catalog.oracle.request.request import Request
from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.destinations import ServiceDestination
from catalog.relations.groups import groups
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import Port
from meshwright.mesh.policies.upstreams import HealthCheck, UpstreamPolicy
from meshwright.mesh.service import Protocol
from tests.meshes import values as a

GET, CONNECT, RPC = HealthCheck("/well"), HealthCheck(None), HealthCheck(None, grpc="shop.v1.Cart")
PORTS = (a.port(80, 8080), a.port(81, 8081, Protocol.GRPC), a.port(90, 9090, a.TCP))
MESH = (
    a.service("shop", *PORTS),
    a.service("raw", a.port(90, 9091, a.TCP)),
    a.workload("shop", "10.0.0.1"),
    a.workload("raw", "10.0.0.2"),
    a.workload("buyer", "10.0.0.3"),
    a.workload("clerk", "10.0.0.4"),
    a.target("to-shop", "buyer", "shop", a.http("all"), a.tcp("any")),
    a.target("to-raw", "buyer", "raw", a.tcp("any")),
    a.route_group("all", a.match("all", ".*")),
    a.tcp_route("any"),
)
CLERK = a.target("clerk", "clerk", "shop", a.http("some"))
SOME = a.route_group("some", a.match("some", "/books"))


def checked(to: str, how: HealthCheck) -> UpstreamPolicy:
    """Make an UpstreamPolicy with a health check."""
    return UpstreamPolicy(a.policy_key(to), a.service_key(to), checking=how)


def asked(view: View) -> dict[str, HealthCheck | None]:
    """Return the health checks of the buyer's destinations, by service and target port."""
    (group,) = (proxy_group for proxy_group in groups(view) if proxy_group.primary.name == "buyer")
    result = (
        destination for part in proxy_policy(view, group).reachable for destination in part.destinations
    )
    places = (item for item in result if isinstance(item, ServiceDestination))
    return {f"{place.service.name}:{place.target_port}": place.checking for place in places}


def said(view: View) -> list[tuple[str, str]]:
    """Return codes and fields of the problems of health checks."""
    result = ((str(problem.code), str(problem.field)) for problem in problems(view))
    return [item for item in result if item[0] in ("MW2124", "MW2125")]


@pytest.mark.parametrize("permissive", [False, True])
@pytest.mark.parametrize(
    ("how", "at"),
    [(GET, {"shop:8080"}), (RPC, {"shop:8081"}), (CONNECT, {"shop:8080", "shop:8081", "shop:9090"})],
)
def test_health_check_applies_to_ports_of_its_protocol(
    how: HealthCheck, at: set[str], *, permissive: bool
) -> None:
    """HTTP checks apply to HTTP ports, gRPC checks to gRPC ports, and connection checks to all ports.

    Other services have no checks.
    """
    health_checks = asked(a.view(*MESH, MeshConfig(permissive=permissive), checked("shop", how)))
    assert {place for place, check in health_checks.items() if check is not None} == at
    assert set(health_checks) == {"shop:8080", "shop:8081", "shop:9090", "raw:9091"}
    assert set(asked(a.view(*MESH)).values()) == {None}


def test_headless_service_is_not_checked() -> None:
    """A client chooses the endpoint of a headless service itself, healthy or not."""
    headless = replace(a.service("shop", *PORTS), headless=True)
    mesh = (headless, *(item for item in MESH[1:]))
    assert set(asked(a.view(*mesh, checked("shop", GET))).values()) == {None}


def test_health_check_that_policy_denies_is_reported_with_its_callers() -> None:
    """The problem names the callers whose checks are refused.

    Connection checks and permissive mode have no such problem.
    """
    view = a.view(*MESH, CLERK, SOME, checked("shop", GET))
    assert said(view) == [("MW2125", "spec.healthCheck.http.path")]
    (message,) = (str(problem) for problem in problems(view) if str(problem.code) == "MW2125")
    assert "default/clerk" in message
    assert "buyer" not in message
    assert said(a.view(*MESH, CLERK, SOME, checked("shop", HealthCheck("/books")))) == []
    assert said(a.view(*MESH, CLERK, SOME, checked("shop", CONNECT))) == []
    assert said(a.view(*MESH, CLERK, SOME, MeshConfig(permissive=True), checked("shop", GET))) == []


def test_http_check_of_a_tcp_service_is_reported() -> None:
    """A service without an HTTP port has no requests, and only connections can be checked."""
    assert said(a.view(*MESH, checked("raw", GET))) == [("MW2124", "spec.healthCheck.http")]
    assert said(a.view(*MESH, checked("raw", CONNECT))) == []


def test_grpc_check_without_a_grpc_port_is_reported() -> None:
    """A gRPC check that policy denies to a caller is reported, too, unless a match admits its path."""
    assert said(a.view(*MESH, checked("raw", RPC))) == [("MW2124", "spec.healthCheck.grpc")]
    assert said(a.view(*MESH, checked("shop", RPC))) == []
    assert said(a.view(*MESH, CLERK, SOME, checked("shop", RPC))) == [("MW2125", "spec.healthCheck.grpc")]
    health = a.route_group("some", a.match("some", "/grpc.health.v1.Health/Check"))
    assert said(a.view(*MESH, CLERK, health, checked("shop", RPC))) == []


def test_explanation_mentions_the_health_check() -> None:
    """A step gives the request, the protocol of the ports and the interval."""
    view = a.view(*MESH, checked("shop", GET))
    explanation = explain(view, Request(a.identity("buyer"), a.service_key("shop"), Port(80)))
    assert any("by GET /well, at ports of HTTP, every 10 s" in step.text for step in explanation.steps)
    explanation = explain(
        a.view(*MESH, checked("shop", RPC)), Request(a.identity("buyer"), a.service_key("shop"), Port(81))
    )
    rpc = "by POST /grpc.health.v1.Health/Check, at ports of gRPC, every 10 s"
    assert any(rpc in step.text for step in explanation.steps)
