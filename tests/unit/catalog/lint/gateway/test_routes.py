"""Lint of Gateway API routes: parents, references, hidden matches, hostnames, denied shares and redirects."""

from dataclasses import replace

import pytest

import catalog.lint.problems
from catalog.lint.codes import Code
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.filters import Filters, NewPath, PathForm, Redirect
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import Kind
from meshwright.mesh.matching import RequestMatch
from meshwright.mesh.names import Port
from meshwright.mesh.policies.routing import RoutePolicy, RouteRule
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.service import Protocol
from tests.meshes import gateway as g
from tests.meshes import values as a

ECHO = a.service("echo", a.port(80), a.port(81), address="10.1.0.1")
V1, V2 = a.service("v1", address="10.1.0.2"), a.service("v2", address="10.1.0.3")
PODS = (a.workload("echo", "10.0.0.1"), a.workload("v1", "10.0.0.2"), a.workload("v2", "10.0.0.3"))
OPEN = MeshConfig(permissive=True)
TO_V1 = Rule(backends=(g.to("v1"),))
AT_ECHO = (g.parent("echo", port=80),)
FAR_ROUTE = g.http_route("far", TO_V1, parents=(g.parent("echo", namespace="default"),), namespace="shop")


def found(mesh: View, *codes: Code) -> list[Problem]:
    """Return the problems with these codes."""
    return [problem for problem in catalog.lint.problems.problems(mesh) if problem.code in codes]


def told(mesh: View, code: Code) -> list[tuple[str, str]]:
    """Return object and field of the problems with a code."""
    return [(f"{problem.key}", problem.field) for problem in found(mesh, code)]


def test_a_good_route_has_no_problem_of_its_own() -> None:
    """Negative control, with the codes of all checks."""
    mesh = g.view(ECHO, V1, V2, *PODS, OPEN, g.http_route("good", TO_V1, parents=AT_ECHO))
    assert [problem for problem in catalog.lint.problems.problems(mesh) if problem.code >= "MW2170"] == []


def test_a_refused_parent_and_an_unresolved_reference_are_errors() -> None:
    """The reasons are those of the status; a route of a gateway alone has no problem."""
    bad = g.http_route(
        "bad", Rule(backends=(g.to("v1"), g.to("none"))), parents=(*AT_ECHO, g.parent("echo", port=82))
    )
    gateway = g.parent("edge", kind=Kind("Gateway", "gateway.networking.k8s.io"))
    edge = g.http_route("edge", Rule(backends=(g.to("none"),)), parents=(gateway,))
    mesh = g.view(ECHO, V1, *PODS, OPEN, bad, edge)
    assert told(mesh, Code.ROUTE_NOT_ACCEPTED) == [("HTTPRoute default/bad", "spec.parentRefs[1]")]
    assert told(mesh, Code.UNRESOLVED_REFERENCE) == [
        ("HTTPRoute default/bad", "spec.rules[0].backendRefs[1]")
    ]
    texts = [problem.expected for problem in found(mesh, Code.ROUTE_NOT_ACCEPTED, Code.UNRESOLVED_REFERENCE)]
    assert "NoMatchingParent" in texts[0]
    assert "BackendNotFound" in texts[1]


@pytest.mark.parametrize(
    ("young", "hidden"),
    [
        ((g.prefix("/"),), [0]),
        ((RequestMatch(),), [0]),
        ((g.prefix("/", ("b", "1"), ("a", "2")), g.exact("/")), [0]),
        ((g.prefix("/", ("a", "2"), ("b", "1"), ("a", "3")),), [0]),
        ((g.prefix("/", ("a", "2")), g.prefix("/x"), g.regex("/")), []),
    ],
)
def test_an_equal_match_of_a_younger_route_is_hidden(
    young: tuple[RequestMatch, ...], hidden: list[int]
) -> None:
    """Equal by meaning: without a path, in another order of headers, with a repeated header."""
    old = g.http_route(
        "old",
        Rule((g.prefix("/"), g.prefix("/", ("a", "2"), ("b", "1")))),
        parents=AT_ECHO,
        created="2026-01-01T00:00:00Z",
    )
    later = g.http_route("later", Rule(young), parents=AT_ECHO)
    mesh = g.view(ECHO, V1, *PODS, OPEN, old, later)
    assert told(mesh, Code.HIDDEN_MATCH) == [
        ("HTTPRoute default/later", f"spec.rules[0].matches[{number}]") for number in hidden
    ]
    for problem in found(mesh, Code.HIDDEN_MATCH):
        assert "of HTTPRoute default/old is equal" in problem.expected
        assert "default/echo:80" in problem.expected


def test_matches_at_other_ports_or_of_other_namespaces_do_not_hide_each_other() -> None:
    """Only routes that decide the same calls are compared."""
    other_port = g.http_route("other", TO_V1, parents=(g.parent("echo", port=81),))
    here = g.http_route("here", TO_V1, parents=AT_ECHO)
    mesh = g.view(ECHO, V1, *PODS, OPEN, here, other_port, FAR_ROUTE)
    assert found(mesh, Code.HIDDEN_MATCH) == []


def test_a_younger_tcp_route_is_hidden_as_a_whole() -> None:
    """The oldest route takes all connections of a port."""
    tcp = a.service("db", a.port(5432, 5432, protocol=a.TCP), address="10.1.0.9")
    at_db, to_db = (g.parent("db"),), Rule(backends=(g.to("db", 5432),))
    old = g.tcp_route("z", to_db, parents=at_db, created="2026-01-01T00:00:00Z")
    mesh = g.view(tcp, OPEN, old, g.tcp_route("a", to_db, parents=at_db))
    (problem,) = found(mesh, Code.HIDDEN_MATCH)
    assert problem.key is not None
    assert problem.key.name == "a"


def test_hostnames_in_a_mesh_are_named() -> None:
    """A TLSRoute's hostnames are the server names, and mean something in a mesh too."""
    http = replace(g.http_route("http", TO_V1, parents=AT_ECHO), hostnames=("echo.example",))
    tls_port = a.service("db", a.port(443, 443, protocol=a.TCP), address="10.1.0.9")
    tls = replace(
        g.tls_route("tls", Rule(backends=(g.to("db", 443),)), parents=(g.parent("db"),)),
        hostnames=("db.example",),
    )
    mesh = g.view(ECHO, V1, *PODS, OPEN, tls_port, http, tls)
    assert told(mesh, Code.HOSTNAMES_IN_MESH) == [("HTTPRoute default/http", "spec.hostnames")]


def test_objects_of_smi_and_route_policies_are_out_of_force_by_a_route() -> None:
    """Both objects are told, with the route, the ports and the callers concerned."""
    split = a.split("split", "echo", ("v1", 1))
    policy = RoutePolicy(a.policy_key("policy"), ECHO.key, (RouteRule(),))
    route = g.http_route("route", TO_V1, parents=AT_ECHO)
    mesh = g.view(ECHO, V1, *PODS, OPEN, split, policy, route)
    problems = found(mesh, Code.OUT_OF_FORCE_BY_ROUTE)
    assert [str(problem.key) for problem in problems] == [
        "TrafficSplit default/split",
        "RoutePolicy default/policy",
    ]
    assert all("HTTPRoute default/route decides the calls to port 80" in item.expected for item in problems)
    assert found(g.view(ECHO, V1, *PODS, OPEN, split, policy), Code.OUT_OF_FORCE_BY_ROUTE) == []
    of_consumer = g.view(ECHO, V1, *PODS, OPEN, split, policy, FAR_ROUTE)
    texts = [problem.expected for problem in found(of_consumer, Code.OUT_OF_FORCE_BY_ROUTE)]
    assert ["of callers in namespace shop to port 80, 81" in text for text in texts] == [True, True]


def test_a_backend_that_callers_of_the_parent_may_not_call_is_named() -> None:
    """Its share is answered with 403, also where another backend is open to all."""
    both = g.http_route("both", Rule(backends=(g.to("v1"), g.to("v2"))), parents=AT_ECHO)
    allowed = (a.tcp_route("all"), a.target("t", "client", "v1", a.tcp("all")))
    client = a.workload("client", "10.0.0.8")
    mesh = g.view(ECHO, V1, V2, *PODS, client, *allowed, both)
    assert told(mesh, Code.SHARE_DENIED) == [("HTTPRoute default/both", "spec.rules[0].backendRefs[1]")]
    assert "default/client may call" in found(mesh, Code.SHARE_DENIED)[0].expected
    also = a.target("t2", "client", "v2", a.tcp("all"))
    assert found(g.view(ECHO, V1, V2, *PODS, client, *allowed, also, both), Code.SHARE_DENIED) == []
    shop = a.service("far", namespace="shop")
    mixed = g.http_route("mixed", Rule(backends=(g.to("far", namespace="shop"), g.to("v1"))), parents=AT_ECHO)
    mesh = g.view(ECHO, V1, *PODS, shop, a.namespace("shop", permissive=True), mixed)
    assert told(mesh, Code.SHARE_DENIED) == [("HTTPRoute default/mixed", "spec.rules[0].backendRefs[1]")]


@pytest.mark.parametrize(
    ("redirect", "match", "circles"),
    [
        (Redirect(), g.prefix("/"), True),
        (Redirect(status=301), g.exact("/x"), True),
        (Redirect(scheme="http"), g.prefix("/"), True),
        (Redirect(scheme="https"), g.prefix("/"), False),
        (Redirect(port=Port(8080)), g.prefix("/"), False),
        (Redirect(host="echo.default.svc"), g.prefix("/"), True),
        (Redirect(host="other.example"), g.prefix("/"), False),
        (Redirect(path=NewPath(PathForm.FULL, "/y")), g.exact("/x"), False),
        (Redirect(path=NewPath(PathForm.FULL, "/x")), g.exact("/x"), True),
        (Redirect(path=NewPath(PathForm.FULL, "/x/y")), g.prefix("/x"), True),
        (Redirect(path=NewPath(PathForm.FULL, "/xy")), g.prefix("/x"), False),
        (Redirect(path=NewPath(PathForm.PREFIX, "/x/")), g.prefix("/x"), True),
        (Redirect(path=NewPath(PathForm.PREFIX, "/y")), g.prefix("/x"), False),
        (Redirect(path=NewPath(PathForm.PREFIX, "/y")), RequestMatch(), True),
        (Redirect(path=NewPath(PathForm.FULL, "/y")), g.regex("/.*"), False),
    ],
)
def test_a_redirect_to_itself_is_named(redirect: Redirect, match: RequestMatch, circles: bool) -> None:
    """Scheme, host, port and path of the new location decide whether the rule redirects again."""
    route = g.http_route("route", Rule((match,), Filters(redirect=redirect)), parents=AT_ECHO)
    mesh = g.view(ECHO, *PODS, OPEN, route)
    assert told(mesh, Code.REDIRECT_TO_ITSELF) == (
        [("HTTPRoute default/route", "spec.rules[0].filters")] if circles else []
    )


def test_parent_of_a_route_needs_no_workloads_of_its_own() -> None:
    """Its calls go to the backends; a Service that is a backend of its own route needs them."""
    parent = a.service("front")
    at_front = (g.parent("front"),)
    to_others = g.http_route("r", TO_V1, parents=at_front)
    to_itself = g.http_route("r", Rule(backends=(g.to("v1"), g.to("front"))), parents=at_front)
    refused = g.http_route("r", TO_V1, parents=(g.parent("front", port=1),))
    none = [("Service default/front", "spec.selector")]
    for route, expected in ((to_others, []), (to_itself, none), (refused, none)):
        assert told(g.view(ECHO, V1, parent, *PODS, OPEN, route), Code.NO_ENDPOINTS) == expected


def test_share_is_denied_by_the_port_of_the_backend_alone() -> None:
    """Access to another port of a backend is no access to the share, and makes nobody a client."""
    admin = a.port(5432, 5432, protocol=Protocol.TCP)
    services = (ECHO, a.service("v1", a.port(80), admin), a.service("v2", a.port(80), admin))
    both = g.http_route("both", Rule(backends=(g.to("v1"), g.to("v2"))), parents=AT_ECHO)
    rules = (a.tcp_route("web", 8080), a.tcp_route("admin", 5432))
    to_v1 = a.target("t", "client", "v1", a.tcp("web"))
    client = a.workload("client", "10.0.0.8")

    def denied(*targets: object) -> list[str]:
        mesh = g.view(*services, *PODS, client, *rules, *targets, both)
        return [f"{problem.field} {problem.value}" for problem in found(mesh, Code.SHARE_DENIED)]

    share = "spec.rules[0].backendRefs[1] default/v2:80"
    assert denied(to_v1) == [share]
    assert denied(to_v1, a.target("u", "client", "v2", a.tcp("admin"))) == [share]
    assert denied(to_v1, a.target("u", "client", "v2", a.tcp("web"))) == []
    assert denied(a.target("u", "client", "v1", a.tcp("admin"))) == [], "no client of the route"


def test_backend_of_a_route_without_a_sidecar_is_reported() -> None:
    """A route makes its Services members of the mesh, and a route of gateways alone does not."""
    bare = a.workload("v1", "10.0.0.2", sidecar=False)
    of_mesh = g.http_route("r", TO_V1, parents=AT_ECHO)
    edge = g.parent("edge", kind=Kind("Gateway", "gateway.networking.k8s.io"))
    of_gateway = g.http_route("r", TO_V1, parents=(edge,))
    for route, expected in ((of_mesh, [("Service default/v1", "endpoints")]), (of_gateway, [])):
        assert told(g.view(ECHO, V1, PODS[0], bare, OPEN, route), Code.OUTSIDE_MESH) == expected
