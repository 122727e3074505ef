"""With egress, where a proxy lets nobody go out to: the services of the mesh that it may not call."""

from catalog.policy.proxy import SocketAddress
from catalog.policy.whole import proxy_policy
from catalog.relations.groups import group_of
from catalog.store.edits import Known
from catalog.store.view import View
from mesh.config import MeshConfig
from mesh.names import IpAddress, Port
from tests.meshes.values import (
    TCP,
    explicit,
    http,
    match,
    port,
    route_group,
    service,
    service_key,
    split,
    target,
    view,
    workload,
)

ALL = route_group("all", match("all", ".*"))
EGRESS = MeshConfig(egress=True)
BUYER = workload("buyer", "10.0.0.9")


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
        service("shop", address="10.96.0.1"),
        service("bank", port(80), port(3306, 3306, TCP), address="10.96.0.2"),
        workload("shop", "10.0.0.1"),
        workload("bank", "10.0.0.2"),
        BUYER,
        ALL,
        target("t", "buyer", "shop", http("all")),
    )
    mesh = view(*things, EGRESS)
    assert closed(mesh) == (at("10.96.0.2"), at("10.96.0.2", 3306))
    assert closed(mesh, "bank") == (at("10.96.0.1"), at("10.96.0.2"), at("10.96.0.2", 3306))
    assert closed(view(*things)) == ()


def test_who_takes_plain_text_stays_reachable() -> None:
    """A service with a workload that has no sidecar, or with none in the mesh, may be somebody else's."""
    mesh = view(
        service("mixed", address="10.96.0.1"),
        workload("mixed-1", "10.0.0.1", app="mixed"),
        workload("mixed-2", "10.0.0.2", app="mixed", sidecar=False),
        service("elsewhere", address="10.96.0.2"),
        service("pods", headless=True),
        workload("pods", "10.0.0.3"),
        BUYER,
        EGRESS,
    )
    assert closed(mesh) == ()


def test_nobody_but_the_mesh_is_at_a_virtual_address_or_an_apex() -> None:
    """They are closed though no workload is behind them."""
    mesh = view(
        service("named"),
        service("apex", address="10.96.0.1"),
        split("s", "apex", ("named", 1)),
        BUYER,
        EGRESS,
    )
    virtual = mesh.virtual_addresses[service_key("named")]
    assert closed(mesh) == (at("10.96.0.1"), SocketAddress(virtual, Port(80)))


def test_a_proxy_that_intercepts_nothing_has_nothing_to_close() -> None:
    """In explicit interception there is no way out either."""
    mesh = view(service("bank"), workload("e", "10.0.0.5", interception=explicit(None)), EGRESS)
    assert closed(mesh, "e") == ()


def test_it_follows_what_changes() -> None:
    """A service opens with a policy, and a workload without a sidecar lifts what was closed."""
    bank, shop = service("bank", address="10.96.0.2"), workload("bank", "10.0.0.2")
    mesh = view(bank, shop, BUYER, EGRESS)
    assert closed(mesh) == (at("10.96.0.2"),)
    for more in (
        (ALL, target("t", "buyer", "bank", http("all"))),
        (workload("plain", "10.0.0.3", app="bank", sidecar=False),),
    ):
        mesh.apply(mesh.edits_to(known(bank, shop, BUYER, EGRESS, *more)))
        assert closed(mesh) == ()
        mesh.apply(mesh.edits_to(known(bank, shop, BUYER, EGRESS)))
        assert closed(mesh) == (at("10.96.0.2"),)


def known(*things: object) -> Known:
    """Return what a view of these things knows."""
    return view(*things).known()
