"""With egress, where a proxy lets nobody go out to: the services of the mesh that it may not call."""

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
    """Return what is closed to a workload's proxy."""
    found = next(each for key, each in mesh.workloads.items() if key.name == name)
    return proxy_policy(mesh, group_of(mesh, found)).closed


def at(address: str, number: int = 80) -> SocketAddress:
    """Make an address."""
    return SocketAddress(IpAddress(address), Port(number))


def test_a_service_that_may_not_be_called_is_closed_at_its_ports() -> None:
    """One that may be called is not; and without egress nothing is, for there is no way out at all."""
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


def test_who_takes_plain_text_stays_reachable() -> None:
    """A service with a workload that has no sidecar, or with none in the mesh, may be somebody else's."""
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


def test_nobody_but_the_mesh_is_at_a_virtual_address_or_an_apex() -> None:
    """They are closed though no workload is behind them."""
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


def test_a_proxy_that_intercepts_nothing_has_nothing_to_close() -> None:
    """In explicit interception there is no way out either."""
    mesh = a.view(a.service("bank"), a.workload("e", "10.0.0.5", interception=a.explicit(None)), EGRESS)
    assert closed(mesh, "e") == ()


def test_it_follows_what_changes() -> None:
    """A service opens with a policy, and a workload without a sidecar lifts what was closed."""
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
