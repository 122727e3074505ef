"""Verdicts about listeners: the cases of the conformance suite, and those that it leaves out."""

from dataclasses import replace

from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.verdicts import ListenerReason, ListenerVerdict
from meshwright.mesh.gateway.gateways import FrontendTls, Gateway, GatewayTls, Listener
from meshwright.mesh.kinds import GATEWAY_TCP_ROUTE, GRPC_ROUTE, HTTP_ROUTE, TLS_ROUTE, Kind
from tests.meshes import gateway as g

BOTH = (HTTP_ROUTE, GRPC_ROUTE)
ACCEPTED = ListenerReason.ACCEPTED


def verdicts(gateway: Gateway, *others: object) -> tuple[ListenerVerdict, ...]:
    """Return the verdicts about a gateway of our class."""
    return listener_verdicts(g.view(g.CLASS, gateway, *others), gateway.key)


def reasons(*listeners: Listener) -> dict[str, ListenerReason]:
    """Return the reason for each listener of one gateway."""
    return {item.listener.name: item.reason for item in verdicts(g.gateway("edge", *listeners))}


def test_listener_with_http_takes_both_kinds_of_requests() -> None:
    """The whole verdict of a good listener."""
    listener = g.listener()
    assert verdicts(g.gateway("edge", listener)) == (
        ListenerVerdict(listener, ACCEPTED, "the listener is in force at port 80", BOTH),
    )


def test_gateway_of_another_controller_or_without_a_class_is_not_served() -> None:
    """It is the business of another controller."""
    for name in ("other", "missing"):
        gateway = g.gateway("edge", class_name=name)
        assert verdicts(gateway, g.FOREIGN_CLASS) == ()


def test_unknown_protocol_refuses_its_listener_alone() -> None:
    """GatewayListenerUnsupportedProtocol: no supported kinds, and the listener beside it is good."""
    bad, good = g.listener("bad", 8080, protocol="INVALID"), g.listener("good")
    message = "protocol INVALID is not served; listeners may have the protocol HTTP, HTTPS, TCP, TLS"
    assert verdicts(g.gateway("edge", bad, good)) == (
        ListenerVerdict(bad, ListenerReason.UNSUPPORTED_PROTOCOL, message),
        ListenerVerdict(good, ACCEPTED, "the listener is in force at port 80", BOTH),
    )


def test_listener_that_cannot_be_read_is_refused_alone() -> None:
    """It may demand what Meshwright does not know, for example a filter that must not be skipped."""
    bad, good = replace(g.listener("bad", 8080), dropped="spec.a: unknown field"), g.listener("good")
    message = "Dropped Listener: spec.a: unknown field"
    assert verdicts(g.gateway("edge", bad, good)) == (
        ListenerVerdict(bad, ListenerReason.UNSUPPORTED_VALUE, message),
        ListenerVerdict(good, ACCEPTED, "the listener is in force at port 80", BOTH),
    )


def test_kinds_that_do_not_fit_are_told_apart() -> None:
    """GatewayInvalidRouteKind, TLSRouteListenerPassthroughSupportedKinds."""
    unknown = Kind("InvalidRoute", "gateway.networking.k8s.io")
    listener = g.listener(kinds=(unknown, HTTP_ROUTE, TLS_ROUTE))
    (verdict,) = verdicts(g.gateway("edge", listener))
    assert (verdict.kinds, verdict.unknown_kinds) == ((HTTP_ROUTE,), (unknown, TLS_ROUTE))
    (alone,) = verdicts(g.gateway("edge", g.listener(kinds=(unknown,))))
    assert (alone.reason, alone.kinds, alone.unknown_kinds) == (ACCEPTED, (), (unknown,))


def test_all_listeners_of_a_conflict_are_refused() -> None:
    """None has precedence; a listener at another port stays."""
    assert reasons(g.listener("one"), g.listener("two"), g.listener("other", 8080)) == {
        "one": ListenerReason.HOSTNAME_CONFLICT,
        "two": ListenerReason.HOSTNAME_CONFLICT,
        "other": ACCEPTED,
    }
    assert reasons(g.listener("one"), g.listener("two", protocol="TCP")) == {
        "one": ListenerReason.PROTOCOL_CONFLICT,
        "two": ListenerReason.PROTOCOL_CONFLICT,
    }


def test_tcp_listener_has_its_port_alone() -> None:
    """Connections have no host name that could tell two of them apart, whatever the manifest says."""
    conflict = ListenerReason.PROTOCOL_CONFLICT
    one, two = g.listener("one", 5432, protocol="TCP"), g.listener("two", 5432, "db.example", protocol="TCP")
    assert reasons(one, two, g.listener("other", 5433, protocol="TCP")) == {
        "one": conflict,
        "two": conflict,
        "other": ACCEPTED,
    }


def test_tcp_listener_takes_tcp_routes() -> None:
    """TCPRouteInvalidNonTCPListener is the other way around."""
    (verdict,) = verdicts(g.gateway("edge", g.listener(protocol="TCP")))
    assert verdict.kinds == (GATEWAY_TCP_ROUTE,)


def test_host_names_that_overlap_are_no_conflict() -> None:
    """GatewayHTTPListenerIsolation."""
    listeners = (
        g.listener("all"),
        g.listener("wide", hostname="*.example.com"),
        g.listener("exact", hostname="abc.example.com"),
    )
    assert set(reasons(*listeners).values()) == {ACCEPTED}


def test_listeners_with_tls_share_a_port_by_host_name() -> None:
    """Nothing else is beside them, and one name belongs to one of them."""
    one, two = g.passthrough("one", hostname="one.example"), g.passthrough("two", hostname="*.example")
    assert reasons(one, two) == {"one": ACCEPTED, "two": ACCEPTED}
    assert set(reasons(one, g.passthrough("two", hostname="one.example")).values()) == {
        ListenerReason.HOSTNAME_CONFLICT
    }
    assert set(reasons(one, g.listener("two", 443)).values()) == {ListenerReason.PROTOCOL_CONFLICT}


def test_listener_with_passthrough_takes_tls_routes_alone() -> None:
    """TLSRouteListenerPassthroughSupportedKinds."""
    (verdict,) = verdicts(g.gateway("edge", g.passthrough(kinds=(GATEWAY_TCP_ROUTE, TLS_ROUTE))))
    assert (verdict.kinds, verdict.unknown_kinds) == ((TLS_ROUTE,), (GATEWAY_TCP_ROUTE,))


def test_validation_that_cannot_be_read_refuses_listeners_that_end_tls() -> None:
    """Otherwise they would admit clients that a rule keeps out; listeners without TLS stay."""
    dropped = GatewayTls(frontend=FrontendTls(dropped="spec.tls.frontend.byName: unknown field"))
    gateway = replace(g.gateway("edge", g.listener(), g.https()), tls=dropped)
    plain, secure = verdicts(gateway)
    message = "the validation of client certificates cannot be read: spec.tls.frontend.byName: unknown field"
    assert (plain.reason, secure.reason) == (ACCEPTED, ListenerReason.UNSUPPORTED_VALUE)
    assert secure.message == message
