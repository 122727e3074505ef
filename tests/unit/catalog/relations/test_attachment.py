"""Tests of the attachment of Gateway API routes: whole verdicts for every rule that concerns a mesh."""

import pytest

from catalog.relations.attachment import attachment, consumer_namespaces, parent_verdicts, routes_at
from catalog.relations.verdicts import (
    AcceptedReason,
    Attachment,
    BrokenReference,
    ParentVerdict,
    ResolvedBackend,
    ResolvedReason,
    ResolvedRule,
    ServicePlace,
    resolution,
)
from catalog.store.edits import Edits
from meshwright.mesh.gateway.filters import Filters, Mirror
from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.gateway.rules import Backend, Rule
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import Protocol
from tests.meshes import gateway as g
from tests.meshes import values as a

HTTP_PORT = a.port(80, name="http")
ADMIN_PORT = a.port(8080, name="admin")
GRPC_PORT = a.port(7070, protocol=Protocol.GRPC, name="grpc")
TCP_PORT = a.port(9090, protocol=a.TCP, name="tcp")
ECHO = a.service("echo", HTTP_PORT, ADMIN_PORT, GRPC_PORT, TCP_PORT, address="10.0.0.1")
V1 = a.service("v1", a.port(80), a.port(8080), address="10.0.0.2")
TO_V1 = Rule(backends=(g.to("v1"),))
AT_ECHO = "Service default/echo"


def accepted(parent: ParentRef, message: str, *ports: int) -> ParentVerdict:
    """Return the verdict that accepts a parent of the Service `echo`."""
    return ParentVerdict(
        parent, a.service_key("echo"), AcceptedReason.ACCEPTED, message, tuple(map(Port, ports))
    )


def refused(
    parent: ParentRef, message: str, reason: AcceptedReason = AcceptedReason.NO_MATCHING_PARENT
) -> ParentVerdict:
    """Return a verdict that refuses a parent of the Service `echo`."""
    return ParentVerdict(parent, a.service_key("echo"), reason, message)


def test_a_route_is_attached_with_its_resolved_references() -> None:
    """The whole value of a simple producer route."""
    parent = g.parent("echo", port=80)
    route = g.http_route("split", TO_V1, parents=(parent,))
    assert attachment(g.view(ECHO, V1, route), g.key_of(route)) == Attachment(
        g.key_of(route),
        (accepted(parent, f"attached to port 80 of {AT_ECHO}", 80),),
        (ResolvedRule((ResolvedBackend(ServicePlace(V1.key, a.port(80))),)),),
    )


@pytest.mark.parametrize(
    ("parent", "verdict"),
    [
        (g.parent("echo"), ("attached to ports 80, 7070, 8080", 80, 7070, 8080)),
        (g.parent("echo", port=8080), ("attached to port 8080", 8080)),
        (g.parent("echo", section="admin"), ("attached to port 8080", 8080)),
        (g.parent("echo", section="admin", port=8080), ("attached to port 8080", 8080)),
        (g.parent("echo", section="admin", port=80), ("has no port 80 named admin",)),
        (g.parent("echo", port=81), ("has no port 81",)),
        (g.parent("echo", section="web"), ("has no port named web",)),
        (g.parent("echo", port=9090), ("has no port 9090 for HTTPRoutes, only ports with tcp",)),
    ],
)
def test_section_and_port_select_the_ports_of_the_parent(
    parent: ParentRef, verdict: tuple[str, *tuple[int, ...]]
) -> None:
    """`sectionName` is the name of a port; without both all ports with requests are selected."""
    route = g.http_route("route", TO_V1, parents=(parent,))
    text, *ports = verdict
    expected = (
        accepted(parent, f"{text} of {AT_ECHO}", *ports) if ports else refused(parent, f"{AT_ECHO} {text}")
    )
    assert parent_verdicts(g.view(ECHO, V1, route), g.key_of(route)) == (expected,)


def test_each_parent_has_its_own_verdict_and_other_kinds_of_parents_have_none() -> None:
    """A Gateway, a ListenerSet and an unknown kind of the Service's name are no Services."""
    others = (
        g.parent("echo", kind=Kind("Gateway", "gateway.networking.k8s.io")),
        g.parent("echo", kind=Kind("ListenerSet", "gateway.networking.k8s.io")),
        g.parent("echo", kind=Kind("Service", "example.org")),
    )
    good, bad = g.parent("echo", port=80), g.parent("echo", port=81)
    route = g.http_route("route", TO_V1, parents=(others[0], bad, others[1], good, others[2]))
    assert parent_verdicts(g.view(ECHO, V1, route), g.key_of(route)) == (
        refused(bad, f"{AT_ECHO} has no port 81"),
        accepted(good, f"attached to port 80 of {AT_ECHO}", 80),
    )


@pytest.mark.parametrize(
    ("services", "message"),
    [
        ((), "Service default/echo does not exist, or is of type ExternalName"),
        (
            (a.service("echo", headless=True),),
            "Service default/echo is headless: its callers choose endpoints themselves",
        ),
    ],
)
def test_a_missing_or_headless_service_is_no_parent(services: tuple[object, ...], message: str) -> None:
    """The specification advises against headless Services as parents."""
    route = g.http_route("route", TO_V1, parents=(g.parent("echo"),))
    assert parent_verdicts(g.view(V1, route, *services), g.key_of(route)) == (
        refused(g.parent("echo"), message),
    )


def test_a_consumer_route_attaches_in_its_own_namespace_only() -> None:
    """No ReferenceGrant is needed; the route is in force at the port for its own namespace."""
    parent = g.parent("echo", namespace="default")
    consumer = g.http_route("consumer", TO_V1, parents=(parent,), namespace="shop")
    producer = g.http_route("producer", TO_V1, parents=(g.parent("echo", port=80),))
    mesh = g.view(ECHO, V1, consumer, producer)
    assert routes_at(mesh, ECHO.key, Port(80), Namespace("default")) == (g.key_of(producer),)
    assert routes_at(mesh, ECHO.key, Port(80), Namespace("shop")) == (g.key_of(consumer),)
    assert routes_at(mesh, ECHO.key, Port(8080), Namespace("default")) == ()
    assert routes_at(mesh, ECHO.key, Port(8080), Namespace("bank")) == ()
    assert consumer_namespaces(mesh, ECHO.key) == (Namespace("shop"),)


def test_a_refused_consumer_route_does_not_count() -> None:
    """A route that is not accepted changes nothing."""
    consumer = g.http_route(
        "consumer", TO_V1, parents=(g.parent("echo", namespace="default", port=81),), namespace="shop"
    )
    mesh = g.view(ECHO, V1, consumer)
    assert consumer_namespaces(mesh, ECHO.key) == ()
    assert routes_at(mesh, ECHO.key, Port(80), Namespace("shop")) == ()


def test_a_grpc_route_takes_a_port_from_an_http_route() -> None:
    """The HTTPRoute stays in force at its other ports, and is refused if it has none."""
    grpc = g.grpc_route("grpc", TO_V1, parents=(g.parent("echo", port=7070),))
    everywhere = g.http_route("everywhere", TO_V1, parents=(g.parent("echo"),))
    there = g.http_route("there", TO_V1, parents=(g.parent("echo", port=7070),))
    mesh = g.view(ECHO, V1, grpc, everywhere, there)
    assert parent_verdicts(mesh, g.key_of(grpc)) == (
        accepted(g.parent("echo", port=7070), f"attached to port 7070 of {AT_ECHO}", 7070),
    )
    assert parent_verdicts(mesh, g.key_of(everywhere)) == (
        accepted(
            g.parent("echo"),
            f"attached to ports 80, 8080 of {AT_ECHO}; GRPCRoutes have port 7070",
            80,
            8080,
        ),
    )
    assert parent_verdicts(mesh, g.key_of(there)) == (
        refused(
            g.parent("echo", port=7070),
            f"other routes of namespace default take precedence at {AT_ECHO}: port 7070 has GRPCRoutes, "
            "which precede HTTPRoutes",
            AcceptedReason.CONFLICTED,
        ),
    )


def test_kinds_conflict_within_a_namespace_only() -> None:
    """A consumer's GRPCRoute does not put the producer's HTTPRoute out of force."""
    parent = g.parent("echo", namespace="default", port=7070)
    grpc = g.grpc_route("grpc", TO_V1, parents=(parent,), namespace="shop")
    http = g.http_route("http", TO_V1, parents=(parent,))
    mesh = g.view(ECHO, V1, grpc, http)
    assert routes_at(mesh, ECHO.key, Port(7070), Namespace("default")) == (g.key_of(http),)
    assert routes_at(mesh, ECHO.key, Port(7070), Namespace("shop")) == (g.key_of(grpc),)


def test_a_tls_route_precedes_a_tcp_route_and_an_http_route_precedes_both() -> None:
    """On a port with requests routes of connections conflict with HTTPRoutes, or do not fit."""
    tls = g.tls_route("tls", TO_V1, parents=(g.parent("echo", port=9090),))
    tcp = g.tcp_route("tcp", TO_V1, parents=(g.parent("echo", port=9090),))
    at_http = g.tcp_route("at-http", TO_V1, parents=(g.parent("echo", port=80),))
    http = g.http_route("http", TO_V1, parents=(g.parent("echo", port=80),))
    mesh = g.view(ECHO, V1, tls, tcp, at_http, http)
    reasons = {
        route.key.name: [verdict.reason for verdict in parent_verdicts(mesh, g.key_of(route))]
        for route in (tls, tcp, at_http, http)
    }
    assert reasons == {
        "tls": [AcceptedReason.ACCEPTED],
        "tcp": [AcceptedReason.CONFLICTED],
        "at-http": [AcceptedReason.CONFLICTED],
        "http": [AcceptedReason.ACCEPTED],
    }
    alone = g.view(ECHO, V1, at_http)
    assert parent_verdicts(alone, g.key_of(at_http)) == (
        refused(g.parent("echo", port=80), f"{AT_ECHO} has no port 80 for TCPRoutes, only ports with http"),
    )


def test_dropped_rules_leave_the_others_and_a_route_without_any_is_refused() -> None:
    """The message about dropped rules begins with the words that the specification demands."""
    bad = Rule(dropped="RE2 refuses the expression `(`")
    parent = g.parent("echo", port=80)
    partly = g.http_route("partly", TO_V1, bad, parents=(parent,))
    wholly = g.http_route("wholly", bad, parents=(parent,))
    mesh = g.view(ECHO, V1, partly, wholly)
    assert attachment(mesh, g.key_of(partly)).dropped == (
        "Dropped Rule spec.rules[1]: RE2 refuses the expression `(`"
    )
    assert [verdict.accepted for verdict in parent_verdicts(mesh, g.key_of(partly))] == [True]
    assert attachment(mesh, g.key_of(wholly)) == Attachment(
        g.key_of(wholly),
        (
            refused(
                parent,
                "no rule is in force: Dropped Rule spec.rules[0]: RE2 refuses the expression `(`",
                AcceptedReason.UNSUPPORTED_VALUE,
            ),
        ),
        (ResolvedRule(),),
    )


def test_a_route_whose_rules_are_all_dropped_takes_no_port_from_others() -> None:
    """A refused GRPCRoute does not conflict with an HTTPRoute."""
    grpc = g.grpc_route("grpc", Rule(dropped="bad"), parents=(g.parent("echo", port=7070),))
    http = g.http_route("http", TO_V1, parents=(g.parent("echo", port=7070),))
    assert parent_verdicts(g.view(ECHO, V1, grpc, http), g.key_of(http)) == (
        accepted(g.parent("echo", port=7070), f"attached to port 7070 of {AT_ECHO}", 7070),
    )


@pytest.mark.parametrize(
    ("backend", "reason", "message"),
    [
        (g.to("none"), ResolvedReason.BACKEND_NOT_FOUND, "Service default/none does not exist"),
        (g.to("none", weight=0), ResolvedReason.BACKEND_NOT_FOUND, "Service default/none does not exist"),
        (g.to("v1", 81), ResolvedReason.BACKEND_NOT_FOUND, "Service default/v1 does not have port 81"),
        (
            g.to("v1", None),
            ResolvedReason.BACKEND_NOT_FOUND,
            "the reference to Service default/v1 lacks a port",
        ),
        (
            g.to("v1", kind=Kind("Bucket", "example.org")),
            ResolvedReason.INVALID_KIND,
            "Bucket.example.org default/v1 is no Service",
        ),
        (
            g.to("echo", 9090),
            ResolvedReason.UNSUPPORTED_PROTOCOL,
            "port 9090 of Service default/echo speaks tcp, as its appProtocol declares",
        ),
        (
            g.to("v1", filters=Filters(unknown=("ExtensionRef",))),
            ResolvedReason.INVALID_KIND,
            "Meshwright does not carry out the filter ExtensionRef, so the requests are answered with 500",
        ),
    ],
)
def test_a_bad_backend_is_named_with_its_reason_and_its_neighbour_is_resolved(
    backend: Backend, reason: ResolvedReason, message: str
) -> None:
    """The route stays accepted; the condition `ResolvedRefs` has the first bad reference."""
    route = g.http_route("route", Rule(backends=(g.to("v1"), backend)), parents=(g.parent("echo", port=80),))
    decided = attachment(g.view(ECHO, V1, route), g.key_of(route))
    field = "spec.rules[0].backendRefs[1]" + (".filters" if backend.filters.unknown else "")
    assert decided.rules == (
        ResolvedRule(
            (
                ResolvedBackend(ServicePlace(V1.key, a.port(80))),
                ResolvedBackend(BrokenReference(reason, message, field)),
            )
        ),
    )
    assert resolution(decided.unresolved) == (reason, f"{field}: {message}")
    assert [verdict.reason for verdict in decided.parents] == [AcceptedReason.ACCEPTED]


def test_backends_of_other_namespaces_need_no_grant_in_a_mesh() -> None:
    """The callee's policies decide about its callers."""
    there = a.service("v1", namespace="shop")
    route = g.http_route("route", Rule(backends=(g.to("v1", namespace="shop"),)), parents=(g.parent("echo"),))
    decided = attachment(g.view(ECHO, there, route), g.key_of(route))
    assert decided.rules == (ResolvedRule((ResolvedBackend(ServicePlace(there.key, a.port(80))),)),)
    assert resolution(decided.unresolved) == (ResolvedReason.RESOLVED, "all references are resolved")


def test_mirrors_and_filters_are_references_too() -> None:
    """Mirrors of the rule and of a backend are resolved, and an unknown filter of the rule is named."""
    missing = Mirror(g.to("none").to)
    filters = Filters(mirrors=(missing, Mirror(g.to("v1").to)), unknown=("ExtensionRef",))
    backend = g.to("v1", filters=Filters(mirrors=(missing,)))
    route = g.http_route("route", Rule(filters=filters, backends=(backend,)), parents=(g.parent("echo"),))
    decided = attachment(g.view(ECHO, V1, route), g.key_of(route))
    place = ServicePlace(V1.key, a.port(80))
    lost = "Service default/none does not exist"
    bad = ResolvedReason.BACKEND_NOT_FOUND
    unknown = BrokenReference(
        ResolvedReason.INVALID_KIND,
        "Meshwright does not carry out the filter ExtensionRef, so the requests are answered with 500",
        "spec.rules[0].filters",
    )
    of_rule = BrokenReference(bad, lost, "spec.rules[0].filters")
    of_backend = BrokenReference(bad, lost, "spec.rules[0].backendRefs[0].filters")
    assert decided.rules == (
        ResolvedRule((ResolvedBackend(place, (of_backend,)),), (of_rule, place), (unknown,)),
    )
    assert decided.unresolved == (unknown, of_rule, of_backend)
    assert resolution(decided.unresolved) == (
        ResolvedReason.INVALID_KIND,
        f"spec.rules[0].filters: {unknown.message}; and 2 more",
    )


def test_a_tcp_route_may_have_any_backend_port() -> None:
    """Connections lead to a port of any protocol."""
    route = g.tcp_route("route", Rule(backends=(g.to("echo", 9090),)), parents=(g.parent("echo", port=9090),))
    assert (
        resolution(attachment(g.view(ECHO, route), g.key_of(route)).unresolved)[0] is ResolvedReason.RESOLVED
    )


def test_verdicts_follow_edits_of_services_and_routes() -> None:
    """A removed Service and a removed rival change the verdicts of a route that stays as it is."""
    grpc = g.grpc_route("grpc", TO_V1, parents=(g.parent("echo", port=7070),))
    http = g.http_route("http", TO_V1, parents=(g.parent("echo", port=7070),))
    mesh = g.view(ECHO, V1, grpc, http)
    key = g.key_of(http)
    assert [verdict.reason for verdict in parent_verdicts(mesh, key)] == [AcceptedReason.CONFLICTED]
    mesh.apply(Edits(objects={g.key_of(grpc): None, a.object_key(V1): None}))
    assert [verdict.reason for verdict in parent_verdicts(mesh, key)] == [AcceptedReason.ACCEPTED]
    assert resolution(attachment(mesh, key).unresolved)[0] is ResolvedReason.BACKEND_NOT_FOUND
    assert routes_at(mesh, ECHO.key, Port(7070), Namespace("default")) == (key,)


def test_a_missing_route_has_no_verdicts() -> None:
    """The derivation never raises for a key of the past."""
    key = g.key_of(g.http_route("gone", parents=()))
    assert attachment(g.view(ECHO), key) == Attachment(key)
    assert PolicyKey(key.namespace, key.name) == a.policy_key("gone")
