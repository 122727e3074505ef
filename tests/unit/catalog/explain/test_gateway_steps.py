"""Tests of explanations about Gateway API routes: which rule decides, and why."""

from typing import Any

from catalog.explain import explain
from catalog.oracle.decide import Answer, Request
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.filters import Filters, NewPath, PathForm, Redirect, Rewrite
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.names import Port
from meshwright.mesh.service import Protocol
from tests.meshes import gateway as g
from tests.meshes import values as a

ECHO, V1 = a.service("echo", address="10.1.0.1"), a.service("v1", address="10.1.0.2")
CLIENT = a.workload("client", "10.0.0.8")
MESH = (ECHO, V1, CLIENT, a.workload("echo", "10.0.0.1"), a.workload("v1", "10.0.0.2"))
OPEN = MeshConfig(permissive=True)
AT_ECHO = (g.parent("echo"),)
TO_V1 = (g.to("v1"),)


def texts(mesh: View, path: str = "/a") -> list[str]:
    """Return the steps of a request of the client to `echo`."""
    return [
        item.text for item in explain(mesh, Request(CLIENT.identity, ECHO.key, Port(80), path=path)).steps
    ]


def test_the_deciding_match_is_named_with_the_criterion() -> None:
    """The other fitting match follows with the reason why it does not count."""
    old = g.http_route(
        "old", Rule((g.prefix("/"),), backends=TO_V1), parents=AT_ECHO, created="2026-01-01T00:00:00Z"
    )
    young = g.http_route("young", Rule((g.prefix("/a"),), backends=TO_V1), parents=AT_ECHO)
    other = g.http_route("other", Rule((g.exact("/b"),), backends=TO_V1), parents=AT_ECHO)
    steps = texts(g.view(*MESH, OPEN, old, young, other, a.split("s", "echo", ("v1", 1))))
    assert (
        "HTTPRoute default/young, spec.rules[0].matches[0], decides the request: its path begins with /a."
        in (steps)
    )
    assert (
        "HTTPRoute default/old, spec.rules[0].matches[0], fits too, but does not count: the first one has a "
        "longer prefix."
    ) in steps
    assert "No rule of HTTPRoute default/other fits the request." in steps
    assert "The rule chooses the backend by weight: default/v1:80 1." in steps
    assert (
        "TrafficSplit default/s does not count, because a route of the Gateway API decides the calls to the "
        "port."
    ) in steps


def test_age_and_name_decide_between_equal_matches() -> None:
    """The criterion is the first that differs."""
    rule = Rule((g.prefix("/"),), backends=TO_V1)
    old = g.http_route("z", rule, parents=AT_ECHO, created="2026-01-01T00:00:00Z")
    young = g.http_route("a", rule, parents=AT_ECHO, created="2026-02-01T00:00:00Z")
    assert any("the first one is older" in step for step in texts(g.view(*MESH, OPEN, old, young)))
    equal = g.http_route("b", rule, parents=AT_ECHO, created="2026-02-01T00:00:00Z")
    assert any(
        "comes first by namespace and name" in step for step in texts(g.view(*MESH, OPEN, young, equal))
    )
    twice = g.http_route("t", rule, rule, parents=AT_ECHO)
    assert any("is in an earlier rule" in step for step in texts(g.view(*MESH, OPEN, twice)))


def test_answers_of_the_clients_sidecar_are_explained() -> None:
    """404 without a fitting match, a redirect, and the share of a missing backend."""
    route = g.http_route(
        "r",
        Rule((g.exact("/r"),), Filters(redirect=Redirect())),
        Rule((g.exact("/half"),), backends=(g.to("v1"), g.to("none"))),
        parents=AT_ECHO,
    )
    mesh = g.view(*MESH, OPEN, route)
    missed = texts(mesh)
    assert "The client's sidecar answers 404: no rule of the routes at this port fits the request." in missed
    assert missed[-1].startswith("The request is refused: the client's sidecar answers 404.")
    assert texts(mesh, "/r")[-1].startswith(
        "The client's sidecar answers the request itself, with the redirect 302."
    )
    half = texts(mesh, "/half")
    lost = "spec.rules[1].backendRefs[1]: Service default/none does not exist"
    assert f"{lost}, so its share is answered with 500." in half
    assert "or a backend does not exist" in half[-1]


def test_a_rewritten_path_is_told_and_judged() -> None:
    """The missing TrafficTarget is for the new path."""
    rewrite = Rewrite(path=NewPath(PathForm.FULL, "/new"))
    route = g.http_route("r", Rule(filters=Filters(rewrite=rewrite), backends=TO_V1), parents=AT_ECHO)
    target = (a.route_group("g", a.match("m", "/other")), a.target("t", "client", "v1", a.http("g")))
    mesh = g.view(*MESH, *target, route)
    steps = texts(mesh)
    assert "The client's sidecar changes the path to /new, which the rules of servers see." in steps
    found = explain(mesh, Request(CLIENT.identity, ECHO.key, Port(80), path="/a"))
    assert found.decision.answer is Answer.REFUSED
    assert [manifest["kind"] for manifest in found.missing] == ["HTTPRouteGroup", "TrafficTarget"]
    assert "/new" in str(found.missing[0])


def test_path_of_a_backend_is_told_and_judged_for_its_share() -> None:
    """A filter of a backend changes the request for this backend alone, also in the missing policy."""
    new, gone = Rewrite(path=NewPath(PathForm.FULL, "/new")), Rewrite(path=NewPath(PathForm.FULL, "/v2"))
    backends = (g.to("v1", filters=Filters(rewrite=new)), g.to("v1", filters=Filters(rewrite=gone)))
    route = g.http_route("r", Rule(backends=backends), parents=AT_ECHO)
    request = Request(CLIENT.identity, ECHO.key, Port(80), path="/a")
    found = explain(g.view(*MESH, route), request)
    group, target = found.missing
    spec: Any = group["spec"]
    assert [(match["name"], match["pathRegex"]) for match in spec["matches"]] == [
        ("this", "/new"),
        ("this-2", "/v2"),
    ]
    allowed = (
        a.route_group("g", *(a.match(match["name"], match["pathRegex"]) for match in spec["matches"])),
        a.target("t", "client", "v1", a.http("g")),
    )
    assert explain(g.view(*MESH, route, *allowed), request).decision.answer is Answer.ALLOWED
    assert (target["kind"], found.decision.answer) == ("TrafficTarget", Answer.UNREACHABLE)


def test_missing_policy_is_named_for_each_share_of_a_route() -> None:
    """A share that the client may not call stays, so its policy is missing beside an allowed share."""
    route = g.http_route("r", Rule(backends=(g.to("v1"), g.to("echo"))), parents=AT_ECHO)
    only_v1 = (a.route_group("all", a.match("m")), a.target("t", "client", "v1", a.http("all")))
    found = explain(g.view(*MESH, *only_v1, route), Request(CLIENT.identity, ECHO.key, Port(80), path="/a"))
    assert found.decision.answer is Answer.DEPENDS
    assert [manifest["metadata"] for manifest in found.missing] == [
        {"name": "client-to-echo", "namespace": "default"}
    ] * 2
    denied = "The client may not send anything there, so its requests are answered with 403."
    assert any(step.text.endswith(denied) for step in found.steps)


def test_changes_by_the_clients_sidecar_are_not_told_of_the_server() -> None:
    """Only the sidecar that changes a path is named."""
    rewrite = Rewrite(path=NewPath(PathForm.FULL, "/new"))
    route = g.http_route("r", Rule(filters=Filters(rewrite=rewrite), backends=TO_V1), parents=AT_ECHO)
    changes = [text for text in texts(g.view(*MESH, OPEN, route)) if "changes the path" in text]
    assert changes == ["The client's sidecar changes the path to /new, which the rules of servers see."]


def test_routes_without_a_part_in_the_decision_are_told_apart() -> None:
    """A refused route, one of another port, and a consumer route of another namespace."""
    refused = g.http_route("refused", Rule(backends=TO_V1), parents=(g.parent("echo", port=82),))
    consumer = g.http_route(
        "consumer",
        Rule(backends=TO_V1),
        parents=(g.parent("echo", namespace="default"),),
        namespace="shop",
    )
    steps = texts(g.view(*MESH, OPEN, refused, consumer))
    assert (
        "HTTPRoute default/refused is not in force at this Service (NoMatchingParent): Service default/echo "
        "has no port 82."
    ) in steps
    assert (
        "HTTPRoute shop/consumer does not count, because it decides only the calls of namespace shop."
        in steps
    )
    assert steps[-1].startswith("The request is allowed.")


def test_rule_of_connections_is_named_without_a_match() -> None:
    """The manifest of a TCPRoute has no matches."""
    echo = a.service("db", a.port(5432, protocol=Protocol.TCP), address="10.1.0.9")
    route = g.tcp_route("r", Rule(backends=(g.to("db", 5432),)), parents=(g.parent("db"),))
    mesh = g.view(*MESH, echo, a.workload("db", "10.0.0.9"), OPEN, route)
    steps = [step.text for step in explain(mesh, Request(CLIENT.identity, echo.key, Port(5432))).steps]
    assert "TCPRoute.gateway.networking.k8s.io default/r, spec.rules[0], decides the connection." in steps
