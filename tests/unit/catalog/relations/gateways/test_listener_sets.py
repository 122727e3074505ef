"""ListenerSets of gateways: which are allowed, in which order, and the listeners of both."""

from dataclasses import replace

import pytest

from catalog.relations.gateways.listener_sets import allowed_sets
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.route_listeners import gateway_verdicts, routes_at_listener
from catalog.relations.gateways.verdicts import (
    AttachedReason,
    BrokenCertificate,
    CertificateReason,
    GatewayVerdict,
    ListenerReason,
    ListenerVerdict,
)
from meshwright.mesh.gateway.gateways import AllowedSets, Gateway, ListenerSet, RoutesFrom
from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import GATEWAY, GRPC_ROUTE, HTTP_ROUTE, LISTENER_SET, SECRET, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.values.label_selector import LabelRequirement, LabelSelector, SelectorOperator
from tests.meshes import gateway as g
from tests.meshes import values as a

SHOP = LabelSelector((LabelRequirement("team", SelectorOperator.IN, ("shop",)),))


def names(gateway: Gateway, *others: object) -> list[str]:
    """Return the paths of the sets that a gateway allows, in their order."""
    return [str(found.key) for found in allowed_sets(g.view(g.CLASS, gateway, *others), gateway.key)]


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (AllowedSets(), []),
        (AllowedSets(RoutesFrom.NONE), []),
        (AllowedSets(RoutesFrom.SAME), ["default/near"]),
        (AllowedSets(RoutesFrom.ALL), ["default/near", "far/far", "other/other"]),
        (AllowedSets(RoutesFrom.SELECTOR, SHOP), ["far/far"]),
        (AllowedSets(RoutesFrom.SELECTOR), []),
    ],
)
def test_gateway_allows_sets_by_their_namespaces(allowed: AllowedSets, expected: list[str]) -> None:
    """ListenerSetDefaultNotAllowed, and ListenerSetAllowedNamespaceNone, Same and Selector."""
    gateway = replace(g.gateway("edge"), allowed_sets=allowed)
    sets = (
        g.listener_set("near"),
        g.listener_set("far", at="default", namespace="far"),
        g.listener_set("other", at="default", namespace="other"),
        g.listener_set("lost", gateway="missing"),
    )
    labelled = NamespaceObject(Namespace("far"), (("team", "shop"),))
    assert names(gateway, labelled, *sets) == expected


def test_older_sets_precede_younger_ones_and_then_their_names_decide() -> None:
    """The name includes the namespace, and a set without an age comes last."""
    sets = (
        g.listener_set("a", namespace="b", at="default", created="2026-11-30T10:00:00Z"),
        g.listener_set("b", namespace="a", at="default", created="2026-11-30T10:00:00Z"),
        g.listener_set("c", created="2026-11-30T09:00:00Z"),
        g.listener_set("0"),
    )
    assert names(g.open_gateway("edge"), *sets) == ["default/c", "a/b", "b/a", "default/0"]


def test_gateway_of_another_controller_allows_nothing_here() -> None:
    """Its sets are the other controller's."""
    gateway = replace(g.open_gateway("edge"), class_name="other")
    assert names(gateway, g.FOREIGN_CLASS, g.listener_set("set")) == []


ACCEPTED = ListenerReason.ACCEPTED
PROTOCOL, HOSTNAME = ListenerReason.PROTOCOL_CONFLICT, ListenerReason.HOSTNAME_CONFLICT


def verdicts(gateway: Gateway, *others: object) -> tuple[ListenerVerdict, ...]:
    """Return the verdicts about the listeners of a gateway and its sets."""
    return listener_verdicts(g.view(g.CLASS, gateway, *others), gateway.key)


def reasons(gateway: Gateway, *sets: ListenerSet) -> list[tuple[str, str, ListenerReason]]:
    """Return set, name and reason of all listeners, in their order; the gateway's own have no set."""
    return [
        ("" if item.listener_set is None else item.listener_set.name, item.listener.name, item.reason)
        for item in verdicts(gateway, *sets)
    ]


def test_listeners_of_sets_follow_those_of_the_gateway() -> None:
    """The whole verdict of a set's listener; the names of listeners may be equal."""
    own, other = g.listener(hostname="own.example"), g.listener(hostname="other.example")
    both = (HTTP_ROUTE, GRPC_ROUTE)
    message = "the listener is in force at port 80"
    assert verdicts(g.open_gateway("edge", own), g.listener_set("set", other)) == (
        ListenerVerdict(own, ACCEPTED, message, both),
        ListenerVerdict(other, ACCEPTED, message, both, listener_set=a.policy_key("set")),
    )
    assert len(verdicts(g.gateway("edge", own), g.listener_set("set", other))) == 1


def test_first_listener_of_a_host_name_has_it() -> None:
    """ListenerSetHostnameConflict: the gateway precedes sets, and an older set a younger one."""
    gateway = g.open_gateway("edge", g.listener("good", hostname="a"), g.listener("taken", hostname="b"))
    older = g.listener_set(
        "older", g.listener("taken", hostname="b"), g.listener("first", hostname="c"), created="1"
    )
    younger = g.listener_set(
        "younger", g.listener("first", hostname="c"), g.listener("good", hostname="d"), created="2"
    )
    assert reasons(gateway, younger, older) == [
        ("", "good", ACCEPTED),
        ("", "taken", ACCEPTED),
        ("older", "taken", HOSTNAME),
        ("older", "first", ACCEPTED),
        ("younger", "first", HOSTNAME),
        ("younger", "good", ACCEPTED),
    ]


def test_lost_listener_takes_nothing_from_others() -> None:
    """ListenerSetProtocolConflict: TCP has lost against the gateway, and disturbs no other listener."""
    gateway = g.open_gateway("edge", g.listener(hostname="a"))
    one = g.listener_set(
        "one", g.listener("tcp", protocol="TCP"), g.listener("http", hostname="b"), created="1"
    )
    two = g.listener_set(
        "two", g.listener("tcp", protocol="TCP"), g.listener("http", hostname="c"), created="2"
    )
    assert reasons(gateway, one, two) == [
        ("", "http", ACCEPTED),
        ("one", "tcp", PROTOCOL),
        ("one", "http", ACCEPTED),
        ("two", "tcp", PROTOCOL),
        ("two", "http", ACCEPTED),
    ]


def test_conflict_within_a_set_has_no_winner_and_keeps_its_port() -> None:
    """As within a gateway. A younger set cannot take what the older ones have not settled."""
    gateway = g.open_gateway("edge", g.listener(port=81))
    one = g.listener_set("one", g.listener("tcp", protocol="TCP"), g.listener("http"), created="1")
    two = g.listener_set("two", g.listener("http", hostname="c"), created="2")
    assert reasons(gateway, one, two)[1:] == [
        ("one", "tcp", PROTOCOL),
        ("one", "http", PROTOCOL),
        ("two", "http", PROTOCOL),
    ]


def test_conflict_names_the_gateway_and_no_other_set() -> None:
    """The authors of sets may not know each other (GEP-1713)."""
    gateway = g.open_gateway("edge", g.listener(hostname="a"))
    older = g.listener_set("older", g.listener(hostname="b"), created="1")
    younger = g.listener_set(
        "younger", g.listener("x", hostname="a"), g.listener("y", hostname="b"), created="2"
    )
    messages = [item.message for item in verdicts(gateway, older, younger)[2:]]
    assert messages == [
        "a listener of Gateway default/edge has the same port 80 and host name (a)",
        "a listener of an older ListenerSet of Gateway default/edge has the same port 80 and host name (b)",
    ]


def grant(source: Kind, namespace: str) -> ReferenceGrant:
    """Make a grant in the namespace `certs` for Secrets."""
    sources = (GrantedFrom(source, Namespace(namespace)),)
    return ReferenceGrant(a.policy_key("grant", "certs"), sources, (GrantedTo(SECRET),))


@pytest.mark.parametrize(
    ("given", "is_permitted"),
    [(grant(GATEWAY, "default"), False), (grant(GATEWAY, "far"), False), (grant(LISTENER_SET, "far"), True)],
)
def test_set_needs_grants_of_its_own(given: ReferenceGrant, *, is_permitted: bool) -> None:
    """ListenerSetReferenceGrant: neither inherits the other's."""
    found = g.listener_set("set", g.https(namespace="certs"), at="default", namespace="far")
    verdict = verdicts(g.open_gateway("edge"), found, given, g.tls_secret(namespace="certs"))[1]
    message = "ListenerSets of far may refer to Secret certs/cert only with a ReferenceGrant in certs"
    broken = BrokenCertificate(CertificateReason.REF_NOT_PERMITTED, message)
    assert verdict.in_force is is_permitted
    assert verdict.broken == (() if is_permitted else (broken,))


def test_set_shows_secrets_of_its_own_namespace() -> None:
    """The gateway's namespace does not count."""
    found = g.listener_set("set", g.https(), at="default", namespace="far")
    verdict = verdicts(g.open_gateway("edge"), found, g.tls_secret(namespace="far"))[1]
    assert verdict.certificates == (a.policy_key("cert", "far"),)


RULE = Rule(backends=(g.to("v1"),))
EDGE = g.open_gateway("edge", g.listener("own", hostname="own.example"))
SET = g.listener_set(
    "set", g.listener("one", hostname="one.example"), g.listener("two", hostname="two.example")
)


def attached(parent: ParentRef, *others: object, namespace: str = "default") -> tuple[GatewayVerdict, ...]:
    """Return the verdicts about a route with one parent."""
    route = g.http_route("route", RULE, parents=(parent,), namespace=namespace)
    return gateway_verdicts(g.view(g.CLASS, route, *others), g.key_of(route))


def test_route_attaches_to_the_listeners_of_its_parent_alone() -> None:
    """ListenerSetGatewayParentSectionNameNotFound: a section of a set is not the gateway's."""
    (at_set,) = attached(g.at_set("set"), EDGE, SET)
    assert at_set == GatewayVerdict(
        g.at_set("set"),
        EDGE.key,
        AttachedReason.ACCEPTED,
        "attached to ListenerSet default/set: one, two",
        ("one", "two"),
        SET.key,
    )
    (at_section,) = attached(g.at_set("set", "two"), EDGE, SET)
    assert at_section.listeners == ("two",)
    (at_gateway,) = attached(g.at("edge"), EDGE, SET)
    assert at_gateway.listeners == ("own",)
    (missing,) = attached(g.at("edge", "one"), EDGE, SET)
    message = "Gateway default/edge lacks a listener named one"
    assert (missing.reason, missing.message) == (AttachedReason.NO_MATCHING_PARENT, message)


def test_route_is_refused_by_a_set_that_the_gateway_does_not_allow() -> None:
    """A set that is missing, or of a gateway of another controller, has no verdict here."""
    (refused,) = attached(g.at_set("set"), g.gateway("edge"), SET)
    message = "Gateway default/edge does not allow ListenerSet default/set in spec.allowedListeners"
    assert (refused.reason, refused.message) == (AttachedReason.NO_MATCHING_PARENT, message)
    assert attached(g.at_set("set"), EDGE) == ()
    assert attached(g.at_set("set"), SET, g.FOREIGN_CLASS, replace(EDGE, class_name="other")) == ()


def test_same_namespace_is_that_of_the_set() -> None:
    """ListenerSetAllowedRoutesNamespaces: the gateway's namespace does not count."""
    far = g.listener_set("set", at="default", namespace="far")
    (refused,) = attached(g.at_set("set", namespace="far"), EDGE, far)
    assert refused.reason is AttachedReason.NOT_ALLOWED_BY_LISTENERS
    (good,) = attached(g.at_set("set"), EDGE, far, namespace="far")
    assert good.listeners == ("http",)


def test_listeners_with_one_name_have_routes_of_their_own() -> None:
    """A listener is found by its owner and name."""
    one, two = (g.listener_set(name, g.listener(hostname=name)) for name in ("one", "two"))
    gateway = g.open_gateway("edge", g.listener(hostname="own"))
    routes = [
        g.http_route(name, RULE, parents=parents)
        for name, parents in (
            ("gateway", (g.at("edge"),)),
            ("first", (g.at_set("one"),)),
            ("both", (g.at_set("one"), g.at_set("two"))),
        )
    ]
    view = g.view(g.CLASS, gateway, one, two, *routes)
    found = [
        [key.name for key in routes_at_listener(view, gateway.key, "http", owner)]
        for owner in (None, one.key, two.key)
    ]
    assert found == [["gateway"], ["both", "first"], ["both"]]
