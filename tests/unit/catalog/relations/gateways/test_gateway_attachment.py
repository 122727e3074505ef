"""Attachment of routes to listeners: reasons in the words of the specification."""

import pytest

from catalog.relations.gateways.route_listeners import gateway_verdicts, routes_at_listener
from catalog.relations.gateways.verdicts import AttachedReason, GatewayVerdict
from catalog.store.edits import Edits
from meshwright.mesh.gateway.gateways import Gateway, Listener, RoutesFrom
from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.values.label_selector import LabelRequirement, LabelSelector, SelectorOperator
from tests.meshes import gateway as g
from tests.meshes import values as a

RULE = Rule(backends=(g.to("v1"),))
TWO = (g.listener("http"), g.listener("admin", 8080, "admin.example"))
SHOP = LabelSelector((LabelRequirement("team", SelectorOperator.IN, ("shop",)),))


def verdict(
    parent: ParentRef,
    gateway: Gateway,
    *others: object,
    namespace: str = "default",
    hostnames: tuple[str, ...] = (),
) -> GatewayVerdict:
    """Return the verdict about the one parent of an HTTPRoute."""
    route = g.http_route("route", RULE, parents=(parent,), namespace=namespace, hostnames=hostnames)
    (result,) = gateway_verdicts(g.view(g.CLASS, gateway, route, *others), g.key_of(route))
    return result


def reason(*args: object, **fields: object) -> tuple[AttachedReason, tuple[str, ...]]:
    """Return the reason and the listeners of a verdict."""
    result = verdict(*args, **fields)  # type: ignore[arg-type]
    return result.reason, result.listeners


def test_route_attaches_to_every_listener_by_default() -> None:
    """The whole verdict of a route without section and port."""
    parent, gateway = g.at("edge"), g.gateway("edge", *TWO)
    assert verdict(parent, gateway) == GatewayVerdict(
        parent,
        gateway.key,
        AttachedReason.ACCEPTED,
        "attached to Gateway default/edge: http, admin",
        ("http", "admin"),
    )


@pytest.mark.parametrize(
    ("parent", "listeners"),
    [
        (g.at("edge", "admin"), ("admin",)),
        (g.at("edge", port=80), ("http",)),
        (g.at("edge", "admin", port=8080), ("admin",)),
        (g.at("edge", "admin", port=80), ()),
        (g.at("edge", port=81), ()),
        (g.at("edge", "missing"), ()),
    ],
)
def test_section_and_port_select_listeners(parent: ParentRef, listeners: tuple[str, ...]) -> None:
    """HTTPRouteInvalidParentRefNotMatchingSectionName, HTTPRouteListenerPortMatching."""
    wanted = AttachedReason.ACCEPTED if listeners else AttachedReason.NO_MATCHING_PARENT
    assert reason(parent, g.gateway("edge", *TWO)) == (wanted, listeners)


@pytest.mark.parametrize(
    ("fields", "labels", "is_allowed"),
    [
        ({}, {}, False),  # Same is the default
        ({"namespaces": RoutesFrom.ALL}, {}, True),
        ({"namespaces": RoutesFrom.NONE}, {}, False),
        ({"namespaces": RoutesFrom.SELECTOR, "selector": SHOP}, {"team": "shop"}, True),
        ({"namespaces": RoutesFrom.SELECTOR, "selector": SHOP}, {"team": "web"}, False),
        ({"namespaces": RoutesFrom.SELECTOR, "selector": LabelSelector()}, {}, True),
        ({"namespaces": RoutesFrom.ALL, "kinds": (GRPC_ROUTE,)}, {}, False),
    ],
)
def test_listener_allows_namespaces_and_kinds(
    fields: dict[str, object], labels: dict[str, str], *, is_allowed: bool
) -> None:
    """HTTPRouteInvalidCrossNamespaceParentRef, HTTPRouteDisallowedKind."""
    gateway = g.gateway("edge", g.listener(**fields))  # type: ignore[arg-type]
    namespace = NamespaceObject(Namespace("web"), tuple(labels.items()))
    parent = g.at("edge", namespace="default")
    wanted = (AttachedReason.ACCEPTED, ("http",))
    refused = (AttachedReason.NOT_ALLOWED_BY_LISTENERS, ())
    assert reason(parent, gateway, namespace, namespace="web") == (wanted if is_allowed else refused)


@pytest.mark.parametrize(
    ("listener", "cause"),
    [
        (
            g.listener(),
            "listener http allows routes of namespace default alone (allowedRoutes.namespaces.from is Same)",
        ),
        (
            g.listener(namespaces=RoutesFrom.NONE),
            "listener http allows routes of no namespace (allowedRoutes.namespaces.from is None)",
        ),
        (
            g.listener(namespaces=RoutesFrom.SELECTOR, selector=SHOP),
            (
                "listener http allows routes of the selected namespaces alone, and web is not selected "
                "(allowedRoutes.namespaces.from is Selector)"
            ),
        ),
        (
            g.listener(kinds=(GRPC_ROUTE,)),
            "listener http allows the kinds GRPCRoute alone (allowedRoutes.kinds), and not HTTPRoute",
        ),
        (
            g.passthrough(),
            "listener tls has protocol TLS, to which TLSRoutes attach, and not HTTPRoutes",
        ),
        (
            g.listener("db", 5432, protocol="TCP", kinds=(HTTP_ROUTE,)),
            "listener db has protocol TCP, to which HTTPRoutes cannot attach",
        ),
        (
            g.listener("odd", protocol="SMTP"),
            (
                "listener odd is not in force: protocol SMTP is not served; listeners may have the protocol "
                "HTTP, HTTPS, TCP, TLS"
            ),
        ),
    ],
)
def test_refusal_names_the_cause(listener: Listener, cause: str) -> None:
    """Protocol, kinds and namespaces are three causes of one reason."""
    result = verdict(g.at("edge", namespace="default"), g.gateway("edge", listener), namespace="web")
    assert (result.reason, result.message) == (
        AttachedReason.NOT_ALLOWED_BY_LISTENERS,
        f"Gateway default/edge does not allow this HTTPRoute: {cause}",
    )


def test_refusal_names_the_cause_of_each_listener() -> None:
    """Each listener has its own."""
    gateway = g.gateway("edge", g.listener(), g.passthrough())
    result = verdict(g.at("edge", namespace="default"), gateway, namespace="web")
    assert result.message == (
        "Gateway default/edge does not allow this HTTPRoute: listener http allows routes of namespace "
        "default alone (allowedRoutes.namespaces.from is Same); listener tls has protocol TLS, to which "
        "TLSRoutes attach, and not HTTPRoutes"
    )


def test_selector_sees_the_name_that_every_cluster_sets_as_label() -> None:
    """Files have namespaces without this label."""
    by_name = LabelRequirement("kubernetes.io/metadata.name", SelectorOperator.IN, ("web",))
    gateway = g.gateway(
        "edge", g.listener(namespaces=RoutesFrom.SELECTOR, selector=LabelSelector((by_name,)))
    )
    assert verdict(g.at("edge", namespace="default"), gateway, namespace="web").accepted


def test_route_without_a_common_host_name_is_refused() -> None:
    """HTTPRouteHostnameIntersection: a suffix does not cover the bare domain."""
    gateway = g.gateway("edge", g.listener(hostname="*.shop.example"))
    result = verdict(g.at("edge"), gateway, hostnames=("shop.example", "cart.example"))
    assert (result.reason, result.message) == (
        AttachedReason.NO_MATCHING_LISTENER_HOSTNAME,
        (
            "the host names of the route (shop.example, cart.example) differ from those of these listeners "
            "of Gateway default/edge: http (*.shop.example)"
        ),
    )


def test_gateways_of_other_controllers_and_missing_ones_get_no_verdict() -> None:
    """There must be no status about parents of others."""
    foreign = g.gateway("other", class_name="other")
    parents = (g.at("other"), g.at("missing"), g.at("edge"), g.parent("edge"))
    route = g.http_route("route", RULE, parents=parents)
    view = g.view(g.CLASS, g.FOREIGN_CLASS, foreign, g.gateway("edge"), route)
    assert [item.parent for item in gateway_verdicts(view, g.key_of(route))] == [g.at("edge")]


def test_route_attaches_to_a_listener_in_a_conflict_and_is_counted() -> None:
    """`attachedRoutes` counts routes at listeners that are not in force."""
    gateway = g.gateway("edge", g.listener("one"), g.listener("two"))
    route = g.http_route("route", RULE, parents=(g.at("edge", "one"),))
    view = g.view(g.CLASS, gateway, route)
    assert routes_at_listener(view, gateway.key, "one") == (g.key_of(route),)
    assert routes_at_listener(view, gateway.key, "two") == ()


def test_class_that_appears_later_puts_the_routes_in_force() -> None:
    """Objects may arrive in any order."""
    gateway, route = g.gateway("edge"), g.http_route("route", RULE, parents=(g.at("edge"),))
    view = g.view(gateway, route)
    assert gateway_verdicts(view, g.key_of(route)) == ()
    later = g.view(g.CLASS).known().objects
    view.apply(Edits(later))
    assert [item.accepted for item in gateway_verdicts(view, g.key_of(route))] == [True]
    view.apply(Edits(dict.fromkeys(later)))
    assert routes_at_listener(view, gateway.key, "http") == ()


def test_service_of_the_same_name_is_no_gateway() -> None:
    """A parent is compared by group and kind."""
    route = g.http_route("route", RULE, parents=(g.parent("edge"),))
    view = g.view(g.CLASS, g.gateway("edge"), route, a.service("edge", address="10.1.0.1"))
    assert gateway_verdicts(view, g.key_of(route)) == ()
