"""States of gateways: acceptance, attached routes, and the workloads that serve them."""

from dataclasses import replace

import pytest

from catalog.relations.gateways.states import GatewayReason, GatewayState, gateway_state
from meshwright.mesh.gateway.gateways import (
    Gateway,
    GatewayAddress,
    Infrastructure,
    Listener,
    ObjectReference,
)
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import IpAddress
from meshwright.mesh.workload import Edge, Workload
from tests.meshes import gateway as g
from tests.meshes import values as a

GOOD, BAD = g.listener("good"), g.listener("bad", 8080, protocol="INVALID")


def state(gateway: Gateway, *others: object) -> GatewayState:
    """Return the state of a gateway of our class."""
    result = gateway_state(g.view(g.CLASS, gateway, *others), gateway.key)
    assert result is not None
    return result


def serving(name: str, address: str, *others: str) -> Workload:
    """Return a workload that serves the gateway `edge`."""
    workload = a.workload(name, address)
    return replace(workload, interception=Edge("edge"), other_addresses=tuple(map(IpAddress, others)))


@pytest.mark.parametrize(
    ("listeners", "accepted", "reason"),
    [
        ((GOOD,), True, GatewayReason.ACCEPTED),
        ((GOOD, BAD), True, GatewayReason.LISTENERS_NOT_VALID),
        ((BAD,), False, GatewayReason.LISTENERS_NOT_VALID),
        ((g.listener("one"), g.listener("two")), False, GatewayReason.LISTENERS_NOT_VALID),
    ],
)
def test_gateway_is_accepted_while_a_listener_is_good(
    listeners: tuple[Listener, ...], reason: GatewayReason, *, accepted: bool
) -> None:
    """GatewayListenerUnsupportedProtocol: the reason is the same, the status is not."""
    result = state(g.gateway("edge", *listeners))
    assert (result.accepted, result.reason) == (accepted, reason)


def values(result: GatewayState) -> tuple[str, ...]:
    """Return the addresses of a gateway without their types."""
    return tuple(address.value for address in result.addresses)


def test_message_names_the_listeners_that_are_not_in_force() -> None:
    """A reader of the status finds the listener and what is wrong with it."""
    result = state(g.gateway("edge", GOOD, BAD))
    why = result.listeners[1].verdict.message
    assert why.startswith("protocol INVALID is not served")
    assert result.message == f"listeners out of force: bad ({why})"


def test_addresses_are_those_of_all_workloads_that_serve_the_gateway() -> None:
    """In the order of the workloads, with the addresses of both families."""
    others = (serving("b", "10.0.0.2"), serving("a", "10.0.0.1", "fd00::1"), a.workload("c", "10.0.0.3"))
    result = state(g.gateway("edge"), *others)
    assert values(result) == ("10.0.0.1", "fd00::1", "10.0.0.2")
    assert [str(name) for name in result.proxies] == ["a-uuid.a.default", "b-uuid.b.default"]


def test_addresses_of_a_service_in_front_replace_those_of_the_workloads() -> None:
    """First those of its load balancer, which may be host names, else its own."""
    serves = replace(serving("a", "10.0.0.1"), labels=(("app", "a"),))
    front = a.service("a", address="10.1.0.1")
    own = state(g.gateway("edge"), serves, front)
    assert own.addresses == (GatewayAddress("IPAddress", "10.1.0.1"),)
    balanced = state(g.gateway("edge"), serves, replace(front, ingress=("192.0.2.1", "lb.example")))
    assert balanced.addresses == (
        GatewayAddress("IPAddress", "192.0.2.1"),
        GatewayAddress("Hostname", "lb.example"),
    )


def test_requested_addresses_narrow_those_in_the_status() -> None:
    """GatewayStaticAddresses: first the type, then the usable ones; an empty value asks for any address."""
    serves = (serving("a", "10.0.0.1", "10.0.0.2"),)

    def with_addresses(*wanted: tuple[str, str]) -> GatewayState:
        addresses = tuple(GatewayAddress(kind, value) for kind, value in wanted)
        return state(replace(g.gateway("edge"), addresses=addresses), *serves)

    refused = with_addresses(("example.com/any", "x"), ("IPAddress", "10.0.0.1"))
    assert (refused.accepted, refused.reason) == (False, GatewayReason.UNSUPPORTED_ADDRESS)
    some = with_addresses(("IPAddress", "10.0.0.9"), ("IPAddress", "10.0.0.2"))
    assert (some.accepted, values(some), some.unusable) == (True, ("10.0.0.2",), ("10.0.0.9",))
    anything = with_addresses(("IPAddress", ""))
    assert (values(anything), anything.unusable) == (("10.0.0.1", "10.0.0.2"), ())


def test_parameters_of_another_kind_are_refused() -> None:
    """GatewayInvalidParametersRef: only a ConfigMap has parameters."""
    parameters = ObjectReference(Kind("Secret"), "missing")
    gateway = replace(g.gateway("edge"), infrastructure=Infrastructure(parameters=parameters))
    assert state(gateway).reason is GatewayReason.INVALID_PARAMETERS


def test_attached_routes_are_counted_for_each_listener() -> None:
    """A route that no listener allows is not counted."""
    gateway = g.gateway("edge", GOOD, g.listener("admin", 8080))
    routes = [
        g.http_route(name, Rule(), parents=(parent,), namespace=namespace)
        for name, parent, namespace in (
            ("both", g.at("edge"), "default"),
            ("one", g.at("edge", "good"), "default"),
            ("stranger", g.at("edge", namespace="default"), "other"),
        )
    ]
    assert [item.attached for item in state(gateway, *routes).listeners] == [2, 1]


def test_gateway_of_another_controller_has_no_state() -> None:
    """Its status is the other controller's."""
    gateway = g.gateway("edge", class_name="other")
    assert gateway_state(g.view(g.CLASS, g.FOREIGN_CLASS, gateway), gateway.key) is None
