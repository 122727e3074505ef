"""Lint of ListenerSets, and of routes whose parent is one."""

from dataclasses import replace

from catalog.lint.codes import Code
from catalog.store.edits import Edits
from meshwright.mesh.gateway.gateways import AGENT_PORT, ObjectReference
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.kinds import GATEWAY, LISTENER_SET, SECRET, SERVICE, TLS_ROUTE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import SourcedObject
from meshwright.mesh.origins import InCluster
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.unit.catalog.lint.gateway.test_gateways import MESH, OPEN, TO_V1, found, told

EDGE = g.open_gateway("edge", g.listener(hostname="a.example"))
SET = g.listener_set("set", g.listener(hostname="b.example"))


def codes(*things: object) -> list[tuple[str, str, str]]:
    """Return object, field and code of the problems of ListenerSets, sorted."""
    everything = found(g.view(*MESH, OPEN, *things), *Code)
    return sorted(
        (str(item.key), item.field, item.code)
        for item in everything
        if item.key and item.key.kind == LISTENER_SET
    )


def test_good_set_has_no_problem() -> None:
    """Negative control; a set of another controller's gateway is judged by nobody here."""
    assert codes(EDGE, SET) == []
    foreign = g.gateway("other", class_name="other")
    assert codes(EDGE, g.FOREIGN_CLASS, foreign, g.listener_set("set", gateway="other")) == []


def test_set_that_is_not_allowed_is_an_error_with_the_field_of_the_gateway() -> None:
    """Its listeners are not judged, because they are not in force anyway."""
    far = g.listener_set("set", g.listener(protocol="INVALID"), at="default", namespace="far")
    (problem,) = found(g.view(*MESH, g.gateway("edge"), far), Code.SET_NOT_ATTACHED)
    assert (problem.field, problem.value) == ("spec.parentRef", "default/edge")
    assert problem.expected == (
        "The Gateway does not allow ListenerSets of namespace far (NotAllowed), so the listeners are not in "
        "force. Allow the namespace in spec.allowedListeners of the Gateway."
    )
    assert [code for _, _, code in codes(g.gateway("edge"), far)] == [Code.SET_NOT_ATTACHED]


def test_parent_of_another_kind_is_named() -> None:
    """The definition accepts it, and nothing takes the listeners."""
    wrong = replace(SET, parent=ObjectReference(SERVICE, "edge"))
    (problem,) = found(g.view(*MESH, EDGE, wrong), Code.SET_NOT_ATTACHED)
    assert (problem.field, problem.value) == ("spec.parentRef", "Service")


def test_missing_gateway_of_a_set_is_a_warning() -> None:
    """As for a route; a set of a cluster may name a namespace that is not read."""
    lost = g.listener_set("set", gateway="egde")
    (problem,) = found(g.view(*MESH, EDGE, lost), Code.UNKNOWN_PARENT_GATEWAY)
    assert (problem.field, problem.value) == ("spec.parentRef", "default/egde")
    assert problem.expected == (
        "This Gateway does not exist (did you mean edge?), so the listeners are not in force. Correct the "
        "reference, or create the Gateway."
    )
    mesh = g.view(*MESH, EDGE)
    far = g.listener_set("set", at="elsewhere")
    key = g.key_of(far)
    mesh.apply(Edits(objects={key: SourcedObject(key, far, InCluster("east", "1", 1))}))
    assert found(mesh, Code.UNKNOWN_PARENT_GATEWAY) == []


def test_listeners_of_a_set_are_judged_like_those_of_a_gateway() -> None:
    """The field is of the set, and the fields of the gateway have no problem."""
    listeners = (
        g.listener("lost", hostname="a.example"),
        g.listener("kinds", 8081, kinds=(TLS_ROUTE,)),
        g.https("https"),
        g.listener("agent", AGENT_PORT),
    )
    unused = ("spec.listeners[0].tls.options",)
    assert codes(EDGE, replace(g.listener_set("set", *listeners), unused=unused)) == [
        ("ListenerSet default/set", "spec.listeners[0]", Code.LISTENER_NOT_ACCEPTED),
        ("ListenerSet default/set", "spec.listeners[0].tls.options", Code.GATEWAY_FIELD_NOT_USED),
        ("ListenerSet default/set", "spec.listeners[1].allowedRoutes.kinds", Code.UNFIT_ROUTE_KINDS),
        ("ListenerSet default/set", "spec.listeners[2].tls.certificateRefs", Code.NO_CERTIFICATE),
        ("ListenerSet default/set", "spec.listeners[3].port", Code.PORT_OF_AGENT),
    ]
    mesh = g.view(*MESH, EDGE, g.listener_set("set", *listeners))
    assert [item for item in told(mesh, *Code) if item[0].startswith("Gateway ")] == []


def test_grant_for_a_gateway_is_named_where_a_set_needs_its_own() -> None:
    """The grants of a Gateway are none for its sets."""
    grant = ReferenceGrant(
        a.policy_key("grant", "certs"), (GrantedFrom(GATEWAY, Namespace("default")),), (GrantedTo(SECRET),)
    )
    mesh = g.view(*MESH, EDGE, g.listener_set("set", g.https(namespace="certs")), grant)
    (problem,) = found(mesh, Code.NO_CERTIFICATE)
    assert "ReferenceGrant certs/grant" in problem.expected
    assert "ListenerSet" in problem.expected


def test_missing_set_of_a_route_is_a_warning() -> None:
    """A similar name is suggested."""
    route = g.http_route("route", TO_V1, parents=(g.at("edge"), g.at_set("sets")))
    (problem,) = found(g.view(*MESH, OPEN, EDGE, SET, route), Code.UNKNOWN_PARENT_GATEWAY)
    assert (problem.field, problem.value) == ("spec.parentRefs[1]", "default/sets")
    assert problem.expected == (
        "This ListenerSet does not exist (did you mean set?), so the route is not in force at this parent. "
        "Correct the reference, or create the ListenerSet."
    )
    good = g.http_route("route", TO_V1, parents=(g.at_set("set"),))
    assert found(g.view(*MESH, OPEN, EDGE, SET, good), Code.UNKNOWN_PARENT_GATEWAY) == []


def test_missing_section_of_a_set_is_suggested_from_the_set_alone() -> None:
    """The gateway has a listener with a more similar name."""
    gateway = g.open_gateway("edge", g.listener("wbe", hostname="a.example"))
    sets = g.listener_set("set", g.listener("webs", hostname="b.example"))
    route = g.http_route("route", TO_V1, parents=(g.at_set("set", "web"),))
    (problem,) = found(g.view(*MESH, OPEN, gateway, sets, route), Code.ROUTE_NOT_ACCEPTED)
    assert problem.value == "default/set"
    assert "ListenerSet default/set lacks a listener named web (did you mean webs?)" in problem.expected
