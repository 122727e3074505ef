"""Tests of enforcement: parts of policy that sidecars are served without, and unknown states."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from catalog.explain import explain, standing
from catalog.explain.enforcement import (
    Enforcement,
    EnforcementState,
    concerned,
    enforcement_without_server,
    headline,
)
from catalog.explain.sidecars import ExcludedPolicy, Sidecar
from catalog.oracle.decide import Answer, Decision, Request
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.routes import MatchPlace
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import HTTP_ROUTE, HTTP_ROUTE_GROUP, MESH_CONFIG, TRAFFIC_SPLIT, TRAFFIC_TARGET
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from tests.meshes import gateway as g
from tests.meshes import values as a

BOOKS, STATUS = a.match("books", "/books.*"), a.match("status", "/status")
MESH = (
    a.service("shop"),
    a.service("v2"),
    a.workload("shop-1", "10.0.0.1", app="shop", account="shop"),
    a.workload("shop-2", "10.0.0.2", app="shop", account="shop"),
    a.workload("v2", "10.0.0.3"),
    a.workload("buyer", "10.0.0.8"),
    a.route_group("routes", BOOKS, STATUS),
    a.tcp_route("any"),
    a.target("t", "buyer", "shop", a.http("routes")),
    a.target("u", "buyer", "v2", a.tcp("any")),
)
GROUP = ObjectKey(HTTP_ROUTE_GROUP, Namespace("default"), "routes")
BAD_BOOKS = ExcludedPolicy(GROUP, BOOKS, "bad repetition operator")
BAD_TARGET = ExcludedPolicy(ObjectKey(TRAFFIC_TARGET, Namespace("default"), "u"), None, "no such principal")
IN_STEP = Sidecar()


def ask(name: str = "shop", path: str = "/books") -> Request:
    """Return the buyer's GET request to a service."""
    return Request(a.identity("buyer"), a.service_key(name), Port(80), "GET", path)


def found(request: Request, sidecars: Mapping[str, Sidecar], *things: object) -> Enforcement:
    """Return the enforcement of a request, with sidecars by workload name; the others are in step."""
    mesh = a.view(*MESH, *things)
    decision = explain(mesh, request).decision
    names = concerned(mesh, request, decision)
    known = {name: sidecars.get(name.uuid.removesuffix("-uuid"), IN_STEP) for name in names}
    return standing(mesh, request, decision, known)


def test_acknowledged_policy_is_in_force_without_remarks() -> None:
    """A policy that every sidecar has acknowledged is in force, and the headline is the plain answer."""
    for request, answer in ((ask(), Answer.ALLOWED), (ask(path="/x"), Answer.REFUSED)):
        seen = found(request, {})
        assert (seen.in_force, seen.decision.answer, seen.because) == (EnforcementState.YES, answer, ())
        assert headline(seen, Decision(answer)) == answer.value


def test_excluded_match_admits_nothing() -> None:
    """A request that only the left-out match admits is refused.

    Requests that another match admits stay allowed.
    """
    less = {"shop-1": Sidecar("", (BAD_BOOKS,)), "shop-2": Sidecar("", (BAD_BOOKS,))}
    seen = found(ask(), less)
    assert (seen.in_force, seen.decision.answer) == (EnforcementState.NO, Answer.REFUSED)
    text = "match books of HTTPRouteGroup default/routes, which the proxy rejects: bad repetition operator"
    assert [item.partition(" is served without ")[2] for item in seen.because] == [text, text]
    assert headline(seen, Decision(Answer.ALLOWED)) == "refused, although the answer by policy is allowed"
    assert found(ask(path="/status"), less).in_force is EnforcementState.YES
    assert found(ask(path="/x"), less).decision.answer is Answer.REFUSED
    both = a.route_group("more", a.match("too", "/book.*"))
    more = a.target("w", "buyer", "shop", a.http("more"))
    assert found(ask(), less, both, more).in_force is EnforcementState.YES


def test_equal_match_of_another_group_is_left_out_too() -> None:
    """An equal match of another group is left out as well, because parts are compared by content."""
    less = {"shop-1": Sidecar("", (BAD_BOOKS,)), "shop-2": Sidecar("", (BAD_BOOKS,))}
    twin = (a.route_group("twin", BOOKS), a.target("w", "buyer", "shop", a.http("twin")))
    assert found(ask(), less, *twin).in_force is EnforcementState.NO


def test_excluded_target_admits_nothing() -> None:
    """A target without matches is a part by itself, so a rejected target admits no calls."""
    seen = found(ask("v2"), {"v2": Sidecar("", (BAD_TARGET,))})
    assert (seen.in_force, seen.decision.answer) == (EnforcementState.NO, Answer.REFUSED)
    assert found(ask("v2"), {"v2": Sidecar("", (BAD_BOOKS,))}).in_force is EnforcementState.YES


def test_excluded_permissive_mode_admits_no_call() -> None:
    """A sidecar that rejects the permissive MeshConfig refuses even the caller of a TrafficTarget."""
    config = ObjectKey(MESH_CONFIG, Namespace("osm-system"), "osm-mesh-config")
    less = Sidecar("", (ExcludedPolicy(config, None, "no"),))
    seen = found(ask("v2"), {"v2": less}, MeshConfig(permissive=True))
    assert (seen.in_force, seen.decision.answer) == (EnforcementState.NO, Answer.REFUSED)


def test_differing_sidecars_of_one_account_make_the_state_unknown() -> None:
    """If sidecars of one account differ, the state is unknown, because either may be chosen."""
    seen = found(ask(), {"shop-1": Sidecar("", (BAD_BOOKS,))})
    assert seen.in_force is EnforcementState.UNKNOWN
    assert (seen.decision.answer, len(seen.because)) == (Answer.ALLOWED, 1)
    assert (
        headline(seen, Decision(Answer.ALLOWED))
        == "allowed by policy, but it is not known whether the sidecars enforce this"
    )


@pytest.mark.parametrize("whose", ["buyer", "shop-2"])
def test_disconnected_sidecar_at_either_end_makes_the_state_unknown(whose: str) -> None:
    """A disconnected sidecar of client or server makes the state unknown; other sidecars do not."""
    seen = found(ask(), {whose: Sidecar("is not connected")})
    assert (seen.in_force, seen.decision.answer) == (EnforcementState.UNKNOWN, Answer.ALLOWED)
    assert [item.endswith(" is not connected") for item in seen.because] == [True]
    assert found(ask("v2"), {"shop-2": Sidecar("is not connected")}).in_force is EnforcementState.YES


def test_client_without_a_sidecar_makes_the_state_unknown() -> None:
    """A client identity without a sidecar makes the state unknown, because no sidecar can be asked."""
    seen = found(replace(ask(), client=a.identity("stranger")), {})
    assert (seen.in_force, seen.because) == (
        EnforcementState.UNKNOWN,
        ("default/stranger has no sidecar",),
    )


def test_split_rejected_by_the_client_makes_the_state_unknown() -> None:
    """If the client's sidecar rejects a split, the endpoint that answers instead is unknown.

    Calls of other services are unaffected.
    """
    bad = ExcludedPolicy(ObjectKey(TRAFFIC_SPLIT, Namespace("default"), "s"), None, "no")
    canary = a.split("s", "shop", ("v2", 1))
    seen = found(ask(), {"buyer": Sidecar("", (bad,))}, canary)
    assert seen.in_force is EnforcementState.UNKNOWN
    assert seen.because[0].endswith(
        "TrafficSplit default/s, which the proxy rejects: no; the endpoint that answers then is not known"
    )
    assert found(ask("v2"), {"buyer": Sidecar("", (bad,))}, canary).in_force is EnforcementState.YES


def test_request_refused_by_the_clients_sidecar_needs_no_server() -> None:
    """The client's sidecar refuses an escaped slash by itself, whatever the servers' sidecars have."""
    seen = found(ask(path="/a%2fb"), {"shop-1": Sidecar("is not connected")})
    assert (seen.in_force, seen.decision.answer) == (EnforcementState.YES, Answer.REFUSED)


def test_offline_explanation_asks_no_sidecar() -> None:
    """Offline, the state is `NOT_ASKED`, with the policy's decision and one reason."""
    decision = explain(a.view(*MESH), ask()).decision
    seen = enforcement_without_server(decision)
    assert (seen.in_force, seen.decision, len(seen.because)) == (EnforcementState.NOT_ASKED, decision, 1)


BY_ROUTES = (
    *MESH,
    a.target("w", "buyer", "v2", a.http("routes")),
    g.http_route(
        "web",
        Rule((g.prefix("/books"), g.exact("/status")), backends=(g.to("v2"),)),
        Rule((g.prefix("/"),), backends=(g.to("shop"),)),
        parents=(g.parent("shop"),),
    ),
)
WEB = ObjectKey(HTTP_ROUTE, Namespace("default"), "web")


def missed(rule: int, match: int, *, is_replaced: bool = False) -> Sidecar:
    """Return a sidecar without a match of the HTTPRoute `web`."""
    return Sidecar("", (ExcludedPolicy(WEB, MatchPlace(rule, match), "too large", is_replaced),))


def routed(request: Request, sidecars: Mapping[str, Sidecar], *things: object) -> Enforcement:
    """Return the enforcement of a request in a mesh with the HTTPRoute `web`."""
    mesh = g.view(*BY_ROUTES, *things)
    decision = explain(mesh, request).decision
    names = concerned(mesh, request, decision)
    known = {name: sidecars.get(name.uuid.removesuffix("-uuid"), IN_STEP) for name in names}
    return standing(mesh, request, decision, known)


def services(enforcement: Enforcement) -> list[str]:
    """Return the names of the Services that may answer."""
    return [share.service.name for share in enforcement.decision.shares]


def test_request_of_a_rejected_route_match_goes_to_the_next_fitting_match() -> None:
    """The place of the match is named, with the cause; requests of other matches are not concerned."""
    out = {"buyer": missed(0, 0)}
    seen = routed(ask(), out)
    assert (seen.in_force, services(seen)) == (EnforcementState.NO, ["shop"])
    text = "spec.rules[0].matches[0] of HTTPRoute default/web, which the proxy rejects: too large"
    assert [item.partition(" is served without ")[2] for item in seen.because] == [text]
    assert headline(seen, Decision(Answer.ALLOWED)) == "allowed, but not in the way that policy decides"
    assert services(routed(ask(), {})) == ["v2"], "negative control"
    other = routed(ask(path="/status"), out)
    assert (other.in_force, services(other)) == (EnforcementState.YES, ["v2"])


def test_request_of_a_rejected_route_match_without_another_gets_404() -> None:
    """If a sidecar lacks every fitting match, it answers 404 itself."""
    parts = (*missed(0, 0).without, *missed(1, 0).without)
    seen = routed(ask(), {"buyer": Sidecar("", parts)})
    reply = seen.decision.turned_down
    assert (seen.in_force, reply and reply.status, len(seen.because)) == (EnforcementState.NO, 404, 2)
    assert headline(seen, Decision(Answer.ALLOWED)) == "refused, although the answer by policy is allowed"


def test_sidecars_of_one_client_with_different_matches_make_the_state_unknown() -> None:
    """Either workload of the client may send the request."""
    twin = a.workload("buyer-2", "10.0.0.9", app="buyer", account="buyer")
    seen = routed(ask(), {"buyer": missed(0, 0)}, twin)
    assert (seen.in_force, len(seen.because)) == (EnforcementState.UNKNOWN, 1)
    assert "default/web" in seen.because[0]


def test_sidecar_with_an_earlier_version_of_the_routes_makes_the_state_unknown() -> None:
    """The rules before the edit are in force there, whichever requests the rejected match fits."""
    seen = routed(ask(path="/other"), {"buyer": missed(0, 0, is_replaced=True)})
    assert (seen.in_force, len(seen.because)) == (EnforcementState.UNKNOWN, 1)
    assert "has an earlier version of the routes to default/shop:80" in seen.because[0]


def test_endpoint_of_the_next_match_is_concerned() -> None:
    """The sidecar to which the request really goes must be known, whichever policy names."""
    out = {"buyer": missed(0, 0), "shop-1": Sidecar("is not connected")}
    seen = routed(ask(), out)
    assert seen.in_force is EnforcementState.UNKNOWN
    assert [item.partition(" ")[2] for item in seen.because] == ["is not connected"]
    by_policy = routed(ask(), {"shop-1": Sidecar("is not connected")})
    assert by_policy.in_force is EnforcementState.YES, "negative control"
