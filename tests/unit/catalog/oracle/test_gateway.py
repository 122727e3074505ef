"""Tests of the oracle about Gateway API routes: decisions by the text of the specification."""

import pytest

from catalog.oracle.decide import Answer, Decision, LocalReply, Request, Share, decide
from catalog.oracle.gateway import routed
from catalog.oracle.request.matches import fits_match, name_rank
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.filters import Cors, Filters, NewPath, PathForm, Redirect, Rewrite
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch
from meshwright.mesh.names import Port
from tests.meshes import gateway as g
from tests.meshes import values as a

ECHO = a.service("echo", address="10.1.0.1")
V1, V2 = a.service("v1", address="10.1.0.2"), a.service("v2", address="10.1.0.3")
CLIENT = a.workload("client", "10.0.0.8")
MESH = (
    *(ECHO, V1, V2, CLIENT, a.service("empty", address="10.1.0.4")),
    *(a.workload("echo", "10.0.0.1"), a.workload("v1", "10.0.0.2"), a.workload("v2", "10.0.0.3")),
)
OPEN = MeshConfig(permissive=True)
AT_ECHO = (g.parent("echo"),)
BY_V1 = Share(V1.key, 1, (a.identity("v1"),), ())


def asked(path: str = "/", *headers: tuple[str, str], method: str = "GET") -> Request:
    """Return a request of the client to `echo`."""
    return Request(CLIENT.identity, ECHO.key, Port(80), method, path, headers)


@pytest.mark.parametrize(
    ("match", "path", "fits"),
    [
        (RequestMatch(Exact("/a")), "/a?x=1", True),
        (RequestMatch(Exact("/a")), "/a/", False),
        (RequestMatch(Prefix("/a")), "/a", True),
        (RequestMatch(Prefix("/a")), "/a/b", True),
        (RequestMatch(Prefix("/a")), "/ab", False),
        (RequestMatch(Prefix("/")), "/anything", True),
        (RequestMatch(Regex("/a[0-9]")), "/a1", True),
        (RequestMatch(Regex("/a")), "/a1", False),
        (RequestMatch(parameters=(FieldMatch("q", Exact("1")),)), "/?q=1&q=2", True),
        (RequestMatch(parameters=(FieldMatch("q", Exact("1")),)), "/?q=2&q=1", False),
        (RequestMatch(parameters=(FieldMatch("q", Exact("1")),)), "/?Q=1", False),
        (RequestMatch(parameters=(FieldMatch("q", Regex("1.")),)), "/?q=%31", False),
        (RequestMatch(GrpcMethod("shop.Cart", "Add")), "/shop.Cart/Add", True),
        (RequestMatch(GrpcMethod("shop.Cart")), "/shop.Cart/Other", True),
        (RequestMatch(GrpcMethod(None, "Add")), "/shop.Other/Add", True),
        (RequestMatch(GrpcMethod("shop.C.*", "A.*", is_regex=True)), "/shop.Cart/Add", True),
        (RequestMatch(GrpcMethod("shop.Cart")), "/shop.Cart2/Add", False),
    ],
)
def test_paths_and_parameters_are_matched_as_specified(match: RequestMatch, path: str, fits: bool) -> None:
    """The query is no part of the path, and parameters are compared as written."""
    assert fits_match(match, asked(path)) is fits


def test_rule_with_cors_decides_preflight_requests_for_its_method() -> None:
    """A browser asks by OPTIONS before a POST; a later rule for any method does not get this question."""
    allowed = Rule((RequestMatch(methods=("POST",)),), filters=Filters(cors=Cors(("*",))))
    view = g.view(*MESH, OPEN, g.http_route("r", allowed, Rule((RequestMatch(),)), parents=AT_ECHO))

    def deciding(method: str, *headers: tuple[str, str]) -> int | None:
        result = routed(view, asked("/", *headers, method=method), ECHO.ports[0])
        return None if result is None or result.found is None else result.found.rule

    origin, wanted = ("Origin", "https://a.example"), "Access-Control-Request-Method"
    assert deciding("POST") == 0
    assert deciding("OPTIONS", origin, (wanted, "POST")) == 0
    assert deciding("OPTIONS", origin, (wanted, "PUT")) == 1
    assert deciding("OPTIONS", (wanted, "POST")) == 1
    assert deciding("OPTIONS", origin) == 1


def test_headers_methods_and_grpc_are_matched_as_specified() -> None:
    """Header names are in any case, one value must fit, and of equal names the first match counts."""
    header = RequestMatch(headers=(FieldMatch("x-a", Exact("1")), FieldMatch("x-a", Exact("2"))))
    assert fits_match(header, asked("/", ("X-A", "1")))
    assert fits_match(header, asked("/", ("x-a", "3"), ("x-a", "1")))
    assert not fits_match(header, asked("/", ("x-a", "2")))
    assert not fits_match(header, asked())
    host = RequestMatch(headers=(FieldMatch("host", Exact("Web.Shop")),))
    assert fits_match(host, asked("/", ("Host", "web.shop:8080")))
    assert not fits_match(host, asked("/", ("Host", "web.shop.other")))
    assert fits_match(RequestMatch(methods=("GET",)), asked())
    assert not fits_match(RequestMatch(methods=("POST",)), asked())
    assert fits_match(RequestMatch(grpc=True), asked("/", ("content-type", "application/grpc+proto")))
    assert not fits_match(RequestMatch(grpc=True), asked("/", ("content-type", "application/grpc-web")))


@pytest.mark.parametrize(
    ("hostnames", "server_name", "rank"),
    [
        (("a.example",), "A.example", (0, 0)),
        (("a.example",), "b.example", None),
        (("*.example", "*.a.example"), "x.a.example", (1, -11)),
        (("*.example",), "x.a.example", (1, -9)),
        (("*.example",), "example", None),
        (("*.example",), "", None),
        ((), "", (2, 0)),
        (("a.example",), None, (2, 0)),
    ],
)
def test_hostnames_of_tls_routes_fit_server_names_as_specified(
    hostnames: tuple[str, ...], server_name: str | None, rank: tuple[int, int] | None
) -> None:
    """An exact name precedes the longest wildcard, which precedes a route without names."""
    assert name_rank(hostnames, server_name) == rank


def test_a_route_decides_in_place_of_a_split() -> None:
    """The deciding route is among the reasons, and what no rule fits is 404."""
    route = g.http_route("r", Rule((g.prefix("/a"),), backends=(g.to("v1"),)), parents=AT_ECHO)
    mesh = g.view(*MESH, OPEN, route, a.split("s", "echo", ("v2", 1)))
    assert decide(mesh, asked("/a")) == Decision(Answer.ALLOWED, (BY_V1,), (g.key_of(route),))
    missed = decide(mesh, asked("/b"))
    assert (missed.answer, missed.turned_down and missed.turned_down.status) == (Answer.REFUSED, 404)


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        (Rule(), 500),
        (Rule(backends=(g.to("none"),)), 500),
        (Rule(backends=(g.to("v1", weight=0),)), 500),
        (Rule(filters=Filters(unknown=("ExtensionRef",)), backends=(g.to("v1"),)), 500),
        (Rule(filters=Filters(redirect=Redirect(status=301))), 301),
    ],
)
def test_answers_of_the_clients_sidecar(rule: Rule, status: int) -> None:
    """A rule without any backend in force, or with a redirect, is answered at once."""
    decision = decide(g.view(*MESH, OPEN, g.http_route("r", rule, parents=AT_ECHO)), asked())
    assert isinstance(decision.turned_down, LocalReply)
    assert (decision.answer, decision.turned_down.status) == (Answer.REFUSED, status)


def test_shares_stay_with_backends_that_do_not_exist_or_refuse() -> None:
    """A missing backend makes the answer depend, and one that refuses does so too."""
    route = g.http_route("r", Rule(backends=(g.to("v1"), g.to("none"))), parents=AT_ECHO)
    decision = decide(g.view(*MESH, OPEN, route), asked())
    assert (decision.answer, decision.broken, decision.shares) == (Answer.DEPENDS, 500, (BY_V1,))
    both = g.http_route("r", Rule(backends=(g.to("v1"), g.to("v2"))), parents=AT_ECHO)
    target = (a.tcp_route("all"), a.target("t", "client", "v1", a.tcp("all")))
    decision = decide(g.view(*MESH, *target, both), asked())
    assert decision.answer is Answer.DEPENDS
    assert decision.shares == (BY_V1, Share(V2.key, 1, (), (a.identity("v2"),)))
    empty = g.http_route("r", Rule(backends=(g.to("empty"),)), parents=AT_ECHO)
    assert decide(g.view(*MESH, OPEN, empty), asked()).answer is Answer.UNREACHABLE
    assert decide(g.view(*MESH, both), asked()).answer is Answer.UNREACHABLE


def test_a_backend_replaces_the_host_and_leaves_the_new_path_of_the_rule() -> None:
    """Path and host of a rewrite count each by itself."""
    whole = Filters(rewrite=Rewrite("rule.example", NewPath(PathForm.FULL, "/new")))
    backend = g.to("v1", filters=Filters(rewrite=Rewrite("backend.example")))
    mesh = g.view(*MESH, OPEN, g.http_route("r", Rule(filters=whole, backends=(backend,)), parents=AT_ECHO))
    port = mesh.services[ECHO.key].port(Port(80))
    assert port is not None
    found = routed(mesh, asked("/old?q", ("Host", "echo")), port)
    assert found is not None
    (way,) = found.ways
    assert (way.request.path, way.request.headers) == ("/new?q", (("host", "backend.example"),))


@pytest.mark.parametrize("of_backend", [Filters(), Filters(rewrite=Rewrite(host="inner.example"))])
def test_the_server_judges_the_rewritten_request(of_backend: Filters) -> None:
    """A TrafficTarget for the new path admits, also beside a new host; one for the old path does not."""
    rewrite = Rewrite(path=NewPath(PathForm.PREFIX, "/new"))
    rule = Rule((g.prefix("/old"),), Filters(rewrite=rewrite), (g.to("v1", filters=of_backend),))
    route = g.http_route("r", rule, parents=AT_ECHO)
    for path, answer in (("/new/x", Answer.ALLOWED), ("/old/x", Answer.REFUSED)):
        group = a.route_group("g", a.match("m", path))
        target = a.target("t", "client", "v1", a.http("g"))
        assert decide(g.view(*MESH, group, target, route), asked("/old/x")).answer is answer


def test_consumer_routes_decide_for_their_namespace() -> None:
    """The client's namespace has no route, so the producer's decides; another namespace has its own."""
    producer = g.http_route("p", Rule(backends=(g.to("v1"),)), parents=AT_ECHO)
    parent = (g.parent("echo", namespace="default"),)
    consumer = g.http_route("c", Rule(backends=(g.to("v2"),)), parents=parent, namespace="shop")
    mesh = g.view(*MESH, OPEN, producer, consumer)
    assert decide(mesh, asked()).because == (g.key_of(producer),)
    other = Request(a.identity("desk", "shop"), ECHO.key, Port(80))
    assert decide(mesh, other).because == (g.key_of(consumer),)
