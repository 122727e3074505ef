"""What is in force of what policy says: parts that sidecars are served without, and what is not known."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from catalog.explain import explain, standing
from catalog.explain.enforcement import (
    Enforcement,
    EnforcementState,
    ExcludedPolicy,
    Sidecar,
    concerned,
    headline,
    not_asked,
)
from catalog.oracle.decide import Answer, Request
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP, MESH_CONFIG, TRAFFIC_SPLIT, TRAFFIC_TARGET
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
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
    """Ask for it."""
    return Request(a.identity("buyer"), a.service_key(name), Port(80), "GET", path)


def found(request: Request, sidecars: Mapping[str, Sidecar], *things: object) -> Enforcement:
    """Return what is in force, with these sidecars by their workload's name, and the others in step."""
    mesh = a.view(*MESH, *things)
    decision = explain(mesh, request).decision
    names = concerned(mesh, request, decision)
    known = {each: sidecars.get(each.uuid.removesuffix("-uuid"), IN_STEP) for each in names}
    return standing(mesh, request, decision, known)


def test_what_all_have_acknowledged_is_in_force() -> None:
    """The policy's answer, and nothing to say."""
    for request, answer in ((ask(), Answer.ALLOWED), (ask(path="/x"), Answer.REFUSED)):
        seen = found(request, {})
        assert (seen.in_force, seen.decision.answer, seen.because) == (EnforcementState.YES, answer, ())
        assert headline(seen, answer) == answer.value


def test_a_match_that_is_left_out_admits_nothing() -> None:
    """What it alone would admit is refused; what another match admits is not, nor what is refused anyway."""
    less = {"shop-1": Sidecar("", (BAD_BOOKS,)), "shop-2": Sidecar("", (BAD_BOOKS,))}
    seen = found(ask(), less)
    assert (seen.in_force, seen.decision.answer) == (EnforcementState.NO, Answer.REFUSED)
    said = "match books of HTTPRouteGroup default/routes, which the proxy rejects: bad repetition operator"
    assert [each.partition(" is served without ")[2] for each in seen.because] == [said, said]
    assert headline(seen, Answer.ALLOWED) == "refused, although the answer by policy is allowed"
    assert found(ask(path="/status"), less).in_force is EnforcementState.YES
    assert found(ask(path="/x"), less).decision.answer is Answer.REFUSED
    both = a.route_group("more", a.match("too", "/book.*"))
    more = a.target("w", "buyer", "shop", a.http("more"))
    assert found(ask(), less, both, more).in_force is EnforcementState.YES


def test_an_equal_match_of_another_group_is_out_as_well() -> None:
    """Parts are left out by what they say."""
    less = {"shop-1": Sidecar("", (BAD_BOOKS,)), "shop-2": Sidecar("", (BAD_BOOKS,))}
    twin = (a.route_group("twin", BOOKS), a.target("w", "buyer", "shop", a.http("twin")))
    assert found(ask(), less, *twin).in_force is EnforcementState.NO


def test_a_target_that_is_left_out_admits_nothing() -> None:
    """One without matches is a part by itself."""
    seen = found(ask("v2"), {"v2": Sidecar("", (BAD_TARGET,))})
    assert (seen.in_force, seen.decision.answer) == (EnforcementState.NO, Answer.REFUSED)
    assert found(ask("v2"), {"v2": Sidecar("", (BAD_BOOKS,))}).in_force is EnforcementState.YES


def test_permissive_mode_that_is_left_out_admits_nobody() -> None:
    """Not even whom a target would admit."""
    config = ObjectKey(MESH_CONFIG, Namespace("osm-system"), "osm-mesh-config")
    less = Sidecar("", (ExcludedPolicy(config, None, "no"),))
    seen = found(ask("v2"), {"v2": less}, MeshConfig(permissive=True))
    assert (seen.in_force, seen.decision.answer) == (EnforcementState.NO, Answer.REFUSED)


def test_sidecars_of_one_account_that_differ() -> None:
    """Who is chosen is not known, and so neither is the answer."""
    seen = found(ask(), {"shop-1": Sidecar("", (BAD_BOOKS,))})
    assert seen.in_force is EnforcementState.UNKNOWN
    assert (seen.decision.answer, len(seen.because)) == (Answer.ALLOWED, 1)
    assert (
        headline(seen, Answer.ALLOWED)
        == "allowed by policy, but it is not known whether the sidecars enforce this"
    )


@pytest.mark.parametrize("whose", ["buyer", "shop-2"])
def test_what_one_has_is_not_known(whose: str) -> None:
    """At either end; of whom the call does not go by it does not matter."""
    seen = found(ask(), {whose: Sidecar("is not connected")})
    assert (seen.in_force, seen.decision.answer) == (EnforcementState.UNKNOWN, Answer.ALLOWED)
    assert [each.endswith(" is not connected") for each in seen.because] == [True]
    assert found(ask("v2"), {"shop-2": Sidecar("is not connected")}).in_force is EnforcementState.YES


def test_without_a_sidecar_of_the_client_it_is_not_known() -> None:
    """Nobody can ask."""
    seen = found(replace(ask(), client=a.identity("stranger")), {})
    assert (seen.in_force, seen.because) == (
        EnforcementState.UNKNOWN,
        ("default/stranger has no sidecar",),
    )


def test_a_split_that_the_client_lacks() -> None:
    """It is not said who answers instead."""
    bad = ExcludedPolicy(ObjectKey(TRAFFIC_SPLIT, Namespace("default"), "s"), None, "no")
    canary = a.split("s", "shop", ("v2", 1))
    seen = found(ask(), {"buyer": Sidecar("", (bad,))}, canary)
    assert seen.in_force is EnforcementState.UNKNOWN
    assert seen.because[0].endswith(
        "TrafficSplit default/s, which the proxy rejects: no; the endpoint that answers then is not known"
    )
    assert found(ask("v2"), {"buyer": Sidecar("", (bad,))}, canary).in_force is EnforcementState.YES


def test_what_the_clients_sidecar_turns_down_needs_no_server() -> None:
    """It answers whatever the others have."""
    seen = found(ask(path="/a%2fb"), {"shop-1": Sidecar("is not connected")})
    assert (seen.in_force, seen.decision.answer) == (EnforcementState.YES, Answer.REFUSED)


def test_offline_it_is_not_asked() -> None:
    """And that is said."""
    decision = explain(a.view(*MESH), ask()).decision
    seen = not_asked(decision)
    assert (seen.in_force, seen.decision, len(seen.because)) == (EnforcementState.NOT_ASKED, decision, 1)
