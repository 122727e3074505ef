"""Tests of closed addresses: with egress, a proxy closes services that it may not call."""

from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.interception import SocketAddress
from catalog.relations.backends.addresses import in_ipv6, virtual_address
from catalog.relations.groups import group_of
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import IpAddress, Port
from tests.meshes import values as a

ALL = a.route_group("all", a.match("all", ".*"))
EGRESS = MeshConfig(egress=True)
BUYER = a.workload("buyer", "10.0.0.9")


def closed(mesh: View, name: str = "buyer") -> tuple[SocketAddress, ...]:
    """Return the addresses that are closed to a workload's proxy."""
    workload = next(item for key, item in mesh.workloads.items() if key.name == name)
    return proxy_policy(mesh, group_of(mesh, workload)).closed


def at(address: str, number: int = 80) -> SocketAddress:
    """Make an address with a port."""
    return SocketAddress(IpAddress(address), Port(number))


def test_service_that_may_not_be_called_is_closed_at_its_ports() -> None:
    """A service that may be called is open.

    Without egress, no address is closed, because no call leaves the mesh.
    """
    things = (
        a.service("shop", address="10.96.0.1"),
        a.service("bank", a.port(80), a.port(3306, 3306, a.TCP), address="10.96.0.2"),
        a.workload("shop", "10.0.0.1"),
        a.workload("bank", "10.0.0.2"),
        BUYER,
        ALL,
        a.target("t", "buyer", "shop", a.http("all")),
    )
    mesh = a.view(*things, EGRESS)
    assert closed(mesh) == (at("10.96.0.2"), at("10.96.0.2", 3306))
    assert closed(mesh, "bank") == (at("10.96.0.1"), at("10.96.0.2"), at("10.96.0.2", 3306))
    assert closed(a.view(*things)) == ()


def test_service_that_may_accept_plain_text_is_not_closed() -> None:
    """A service with a workload without a sidecar, or without any workload, may be outside the mesh.

    A headless one has no address to close.
    """
    mesh = a.view(
        a.service("mixed", address="10.96.0.1"),
        a.workload("mixed-1", "10.0.0.1", app="mixed"),
        a.workload("mixed-2", "10.0.0.2", app="mixed", sidecar=False),
        a.service("elsewhere", address="10.96.0.2"),
        a.service("pods", headless=True),
        a.workload("pods", "10.0.0.3"),
        BUYER,
        EGRESS,
    )
    assert closed(mesh) == ()


def test_virtual_address_and_apex_are_closed_without_workloads() -> None:
    """Both belong to the mesh alone, so they are closed even without workloads."""
    mesh = a.view(
        a.service("named"),
        a.service("apex", address="10.96.0.1"),
        a.split("s", "apex", ("named", 1)),
        BUYER,
        EGRESS,
    )
    virtual = virtual_address(mesh, a.service_key("named"))
    assert virtual is not None
    twin = in_ipv6(virtual, mesh.settings.virtual_addresses_ipv6)
    assert closed(mesh) == tuple(sorted([at("10.96.0.1"), at(virtual), at(twin)]))


def test_explicit_interception_closes_nothing() -> None:
    """The proxy intercepts no outbound calls, so there is no way out to close."""
    mesh = a.view(a.service("bank"), a.workload("e", "10.0.0.5", interception=a.explicit(None)), EGRESS)
    assert closed(mesh, "e") == ()


def test_closed_addresses_follow_policies_and_workloads() -> None:
    """A TrafficTarget opens the address, and so does a workload without a sidecar."""
    bank, shop = a.service("bank", address="10.96.0.2"), a.workload("bank", "10.0.0.2")
    mesh = a.view(bank, shop, BUYER, EGRESS)
    assert closed(mesh) == (at("10.96.0.2"),)
    for more in (
        (ALL, a.target("t", "buyer", "bank", a.http("all"))),
        (a.workload("plain", "10.0.0.3", app="bank", sidecar=False),),
    ):
        mesh.apply(mesh.edits_to(Edits(a.objects(bank, shop, BUYER, EGRESS, *more))))
        assert closed(mesh) == ()
        mesh.apply(mesh.edits_to(Edits(a.objects(bank, shop, BUYER, EGRESS))))
        assert closed(mesh) == (at("10.96.0.2"),)
