"""Tests of the entries of Gateway API routes: the whole table of a caller at one port."""

from dataclasses import replace
from datetime import timedelta

import pytest

from catalog.policy.route_table import table
from catalog.policy.values.route_actions import (
    Answer,
    AnsweredShare,
    Forward,
    RequestMirror,
    RouteAction,
    ShareChanges,
    WeightedBackend,
)
from catalog.policy.values.route_table import AppliedRoute, RequestTreatment, RouteEntry, RouteSource
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.filters import Cors, Filters, Mirror, NewPath, PathForm, Redirect, Rewrite
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.gateway.rules import Backend, Rule, RuleRetry, Timeouts
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE, TLS_ROUTE, Kind
from meshwright.mesh.matching import RequestMatch
from meshwright.mesh.names import Port
from meshwright.mesh.policies.routing import HeaderChanges
from meshwright.mesh.policies.upstreams import HashKey, KeyKind, LoadBalancing, UpstreamPolicy
from meshwright.mesh.service import Protocol
from meshwright.mesh.workload import WorkloadPort
from tests.meshes import gateway as g
from tests.meshes import values as a

ECHO = a.service(
    "echo",
    a.port(80),
    a.port(7070, 7070, protocol=Protocol.GRPC),
    a.port(9090, 9090, protocol=a.TCP),
    address="10.1.0.1",
)
V1, V2 = a.service("v1", a.port(80, "web"), address="10.1.0.2"), a.service("v2", address="10.1.0.3")
EMPTY = a.service("empty", address="10.1.0.4")
CLIENT = a.workload("client", "10.0.0.8")
MESH = (
    *(ECHO, V1, V2, EMPTY, CLIENT, a.workload("echo", "10.0.0.1"), a.workload("v2", "10.0.0.3")),
    a.workload("v1", "10.0.0.2", WorkloadPort(Port(8080), "web")),
)
OPEN = MeshConfig(permissive=True)
TO_V1 = WeightedBackend(V1.key, "web", 1)
AT_80, AT_GRPC, AT_TCP = ((g.parent("echo", port=number),) for number in (80, 7070, 9090))
PUT = HeaderChanges(put=(("x-a", "1"),))
ADD = HeaderChanges(add=(("x-b", "2"),))


def entries(mesh: View, number: int = 80) -> tuple[RouteEntry, ...]:
    """Return the client's table at a port of `echo`."""
    port = mesh.services[ECHO.key].port(number)
    assert port is not None
    return table(mesh, CLIENT.identity, ECHO.key, port)


def actions(*routes: GatewayRoute, number: int = 80) -> list[RouteAction]:
    """Return the actions at a port of `echo` in a permissive mesh with these routes."""
    return [entry.action for entry in entries(g.view(*MESH, OPEN, *routes), number)]


def action_of(rule: Rule) -> RouteAction:
    """Return the action that a rule for all requests makes."""
    (action,) = actions(g.http_route("r", rule, parents=AT_80))
    return action


def source(kind: Kind, route: GatewayRoute, rule: int = 0, match: int = 0) -> tuple[RouteSource, ...]:
    """Return the provenance of an entry."""
    return (RouteSource(AppliedRoute(kind, route.key, rule, route.rules[rule], match)),)


def test_each_match_makes_an_entry_in_the_order_of_precedence() -> None:
    """The whole table of two routes: by match, without an entry for the rest."""
    old = g.http_route(
        "old",
        Rule((g.prefix("/"), g.exact("/x")), backends=(g.to("v1"),)),
        parents=AT_80,
        created="2026-01-01T00:00:00Z",
    )
    young = g.http_route("young", Rule((g.prefix("/a"),), backends=(g.to("v2", weight=3),)), parents=AT_80)
    to_v1, to_v2 = Forward((TO_V1,)), Forward((WeightedBackend(V2.key, "8080", 3),))
    assert entries(g.view(*MESH, OPEN, young, old)) == (
        RouteEntry((g.exact("/x"),), to_v1, source(HTTP_ROUTE, old, 0, 1)),
        RouteEntry((g.prefix("/a"),), to_v2, source(HTTP_ROUTE, young)),
        RouteEntry((g.prefix("/"),), to_v1, source(HTTP_ROUTE, old)),
    )


def test_splits_and_route_policies_have_no_effect_beside_a_route() -> None:
    """The table has the route's entry alone; without the route the split decides."""
    split = a.split("split", "echo", ("v2", 1))
    route = g.http_route("r", Rule(backends=(g.to("v1"),)), parents=AT_80)
    mesh = g.view(*MESH, OPEN, split, route)
    assert [entry.action for entry in entries(mesh)] == [Forward((TO_V1,))]
    (entry,) = entries(g.view(*MESH, OPEN, split))
    assert [str(backend.upstream) for backend in entry.backends] == ["default/v2"]


@pytest.mark.parametrize(
    ("backends", "expected"),
    [
        ((g.to("none"),), Answer(500)),
        ((), Answer(500)),
        ((g.to("v1", weight=0),), Answer(500)),
        ((g.to("v1", weight=0), g.to("none", weight=0)), Answer(500)),
        ((g.to("v1"), g.to("none", weight=0)), Forward((TO_V1,))),
        ((g.to("v1"), g.to("v1", 81, weight=2)), Forward((TO_V1, AnsweredShare(500, 2)))),
        (
            (g.to("v1"), g.to("v2", weight=0)),
            Forward((TO_V1, WeightedBackend(V2.key, "8080", 0))),
        ),
        ((g.to("v1", weight=0), g.to("none")), Answer(500)),
        ((g.to("empty"),), Forward((WeightedBackend(EMPTY.key, "8080", 1),))),
        ((g.to("v1"), g.to("v1")), Forward((TO_V1, TO_V1))),
    ],
)
def test_a_bad_backend_costs_its_share_alone(backends: tuple[Backend, ...], expected: RouteAction) -> None:
    """Weights stay with their backends; without any weight in force the whole match gets an error."""
    assert action_of(Rule(backends=backends)) == expected


def test_broken_shares_of_grpc_are_unavailable() -> None:
    """GRPC clients read 503 as UNAVAILABLE."""
    rule = Rule((g.call("shop.Cart"),), backends=(g.to("v1"), g.to("none", weight=3)))
    route = g.grpc_route("r", rule, Rule((g.call(),)), parents=AT_GRPC)
    assert entries(g.view(*MESH, OPEN, route), 7070) == (
        RouteEntry(
            (g.call("shop.Cart"),), Forward((TO_V1, AnsweredShare(503, 3))), source(GRPC_ROUTE, route)
        ),
        RouteEntry((g.call(),), Answer(503), source(GRPC_ROUTE, route, 1)),
    )


def test_a_share_whose_callee_is_not_permitted_answers_403() -> None:
    """Its weight is not given to others; an empty backend has nobody who refuses, and stays."""
    route = g.http_route(
        "r", Rule(backends=(g.to("v1"), g.to("v2", weight=4), g.to("empty", weight=2))), parents=AT_80
    )
    target = (a.tcp_route("all"), a.target("t", "client", "v1", a.tcp("all")))
    (entry,) = entries(g.view(*MESH, *target, route))
    assert entry.action == Forward((TO_V1, AnsweredShare(403, 4), WeightedBackend(EMPTY.key, "8080", 2)))
    denied = g.http_route("r", Rule(backends=(g.to("v2"),)), parents=AT_80)
    to_echo = (a.tcp_route("all"), a.target("t", "client", "echo", a.tcp("all")))
    (entry,) = entries(g.view(*MESH, *to_echo, denied))
    assert entry.action == Answer(403)
    assert entries(g.view(*MESH, denied)) == ()


@pytest.mark.parametrize(
    ("redirect", "port"),
    [
        (Redirect(), 80),
        (Redirect(scheme="https"), 443),
        (Redirect(scheme="http"), 80),
        (Redirect(scheme="https", port=Port(8443)), 8443),
        (Redirect(port=Port(8080), status=301), 8080),
    ],
)
def test_a_redirect_has_the_given_port_else_the_schemes_else_the_called_one(
    redirect: Redirect, port: int
) -> None:
    """Everything else of a redirect stays as written."""
    expected = Redirect(redirect.scheme, redirect.host, redirect.path, Port(port), redirect.status)
    assert action_of(Rule(filters=Filters(redirect=redirect))) == expected


def test_the_called_port_of_a_redirect_is_that_of_the_service() -> None:
    """At another port of the Service the same rule redirects to that port."""
    route = g.http_route("r", Rule(filters=Filters(redirect=Redirect())), parents=(g.parent("echo"),))
    assert actions(route, number=7070) == [Redirect(port=Port(7070))]


def test_timeouts_retries_and_rewrites_are_taken_over() -> None:
    """Zero turns a timeout off; an absent retry leaves the caller's."""
    rewrite = Rewrite("other.example", NewPath(PathForm.PREFIX, "/new"))
    second, off = timedelta(seconds=1), timedelta(0)
    retry = RuleRetry(3, (500, 503), timedelta(milliseconds=10))
    rule = Rule(
        filters=Filters(rewrite=rewrite),
        backends=(g.to("v1"),),
        timeouts=Timeouts(second, second / 2),
        retry=retry,
    )
    assert action_of(rule) == Forward(
        (TO_V1,), timeout=second, rewrite=rewrite, retries=retry, per_try=second / 2
    )
    assert action_of(Rule(backends=(g.to("v1"),), timeouts=Timeouts(off, off))) == Forward((TO_V1,))
    assert action_of(Rule(backends=(g.to("v1"),), retry=RuleRetry(0))) == Forward(
        (TO_V1,), retries=RuleRetry(0)
    )


def test_filters_of_the_rule_treat_requests_and_those_of_a_backend_its_share() -> None:
    """Header changes of the whole rule are in the treatment, those of a backend at the share."""
    cors = Cors(origins=("https://shop.example",))
    own = Filters(request_headers=ADD, rewrite=Rewrite("v1.example"), mirrors=(Mirror(g.to("v2").to, 1, 3),))
    rule = Rule(
        filters=Filters(request_headers=PUT, response_headers=ADD, cors=cors),
        backends=(g.to("v1", filters=own), g.to("v2")),
    )
    (entry,) = entries(g.view(*MESH, OPEN, g.http_route("r", rule, parents=AT_80)))
    to_v2 = WeightedBackend(V2.key, "8080", 1)
    changes = ShareChanges(ADD, rewrite=Rewrite("v1.example"), mirrors=(RequestMirror(to_v2, 1, 3),))
    assert entry.treatment == RequestTreatment(PUT, ADD, cors=cors)
    assert entry.action == Forward((WeightedBackend(V1.key, "web", 1, own=changes), to_v2))


def test_copies_go_to_existing_places_that_the_client_may_call() -> None:
    """A mirror that is missing or not permitted makes no copy, and changes nothing else."""
    mirrors = (Mirror(g.to("v2").to, 20), Mirror(g.to("none").to), Mirror(g.to("echo").to))
    rule = Rule(filters=Filters(mirrors=mirrors), backends=(g.to("v1"),))
    copy = RequestMirror(WeightedBackend(V2.key, "8080", 1), 20, 100)
    to_echo = RequestMirror(WeightedBackend(ECHO.key, "8080", 1))
    assert action_of(rule) == Forward((TO_V1,), mirrors=(copy, to_echo))
    target = (a.tcp_route("all"), a.target("t", "client", "v1", a.tcp("all")))
    (entry,) = entries(g.view(*MESH, *target, g.http_route("r", rule, parents=AT_80)))
    assert entry.action == Forward((TO_V1,))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(filters=Filters(unknown=("ExtensionRef",)), backends=(g.to("v1"),)), Answer(500)),
        (
            Rule(backends=(g.to("v1"), g.to("v2", filters=Filters(unknown=("ExtensionRef",))))),
            Forward((TO_V1, AnsweredShare(500, 1))),
        ),
        (
            Rule(backends=(g.to("v1"), g.to("v2", filters=Filters(redirect=Redirect())))),
            Forward((TO_V1, AnsweredShare(500, 1))),
        ),
    ],
)
def test_a_filter_that_is_not_carried_out_fails_its_requests(rule: Rule, expected: RouteAction) -> None:
    """Such a filter is never skipped; at a backend it costs the backend's share."""
    assert action_of(rule) == expected


def test_a_dropped_rule_leaves_its_requests_to_the_others() -> None:
    """Its matches make no entries."""
    dropped = Rule((g.exact("/x"),), backends=(g.to("v2"),), dropped="bad")
    route = g.http_route("r", dropped, Rule(backends=(g.to("v1"),)), parents=AT_80)
    assert entries(g.view(*MESH, OPEN, route)) == (
        RouteEntry((RequestMatch(),), Forward((TO_V1,)), source(HTTP_ROUTE, route, 1)),
    )


def test_upstream_policies_of_backends_go_on() -> None:
    """The hash key of a backend's UpstreamPolicy is the entry's."""
    key = HashKey(KeyKind.HEADER, "x-user")
    policy = UpstreamPolicy(a.policy_key("p"), V1.key, load=LoadBalancing(key=key))
    route = g.http_route("r", Rule(backends=(g.to("v1"),)), parents=AT_80)
    (entry,) = entries(g.view(*MESH, OPEN, policy, route))
    assert entry.action == Forward((TO_V1,), keys=(key,))


def test_the_oldest_tcp_route_gets_all_connections() -> None:
    """A share without a backend is answered, which closes a connection; weight 0 is left out."""
    backends = (g.to("echo", 9090, weight=2), g.to("none"), g.to("v1", weight=0))
    old = g.tcp_route("z", Rule(backends=backends), parents=AT_TCP, created="2026-01-01T00:00:00Z")
    young = g.tcp_route("a", Rule(backends=(g.to("v2"),)), parents=AT_TCP)
    (entry,) = entries(g.view(*MESH, OPEN, young, old), 9090)
    to_echo = WeightedBackend(ECHO.key, "9090", 2)
    assert (entry.matches, entry.action) == ((), Forward((to_echo, AnsweredShare(500, 1))))


def test_tls_routes_share_a_port_by_server_names() -> None:
    """The older route keeps a name that both have; one without names gets all other connections."""
    to_echo, to_v2 = (Rule(backends=(backend,)) for backend in (g.to("echo", 9090), g.to("v2")))
    old = replace(
        g.tls_route("old", to_echo, parents=AT_TCP, created="2026-01-01T00:00:00Z"),
        hostnames=("a.example", "*.b.example"),
    )
    young = replace(g.tls_route("young", to_v2, parents=AT_TCP), hostnames=("a.example", "c.example"))
    rest = g.tls_route("zz", to_v2, parents=AT_TCP)
    forward_echo = Forward((WeightedBackend(ECHO.key, "9090", 1),))
    forward_v2 = Forward((WeightedBackend(V2.key, "8080", 1),))
    assert entries(g.view(*MESH, OPEN, rest, young, old), 9090) == (
        RouteEntry((), forward_echo, source(TLS_ROUTE, old), server_names=("a.example", "*.b.example")),
        RouteEntry((), forward_v2, source(TLS_ROUTE, young), server_names=("c.example",)),
        RouteEntry((), forward_v2, source(TLS_ROUTE, rest)),
    )


def test_a_tls_route_without_names_hides_no_name_of_a_younger_route() -> None:
    """A name is more specific than none, whatever the ages."""
    to_echo, to_v2 = (Rule(backends=(backend,)) for backend in (g.to("echo", 9090), g.to("v2")))
    rest = g.tls_route("rest", to_v2, parents=AT_TCP, created="2026-01-01T00:00:00Z")
    named = replace(g.tls_route("named", to_echo, parents=AT_TCP), hostnames=("a.example",))
    first, last = entries(g.view(*MESH, OPEN, rest, named), 9090)
    assert (first.server_names, last.server_names) == (("a.example",), ())
