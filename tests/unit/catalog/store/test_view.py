"""What a view makes of objects and workloads."""

from ipaddress import IPv4Network

import pytest

from catalog.policy.whole import proxy_policy
from catalog.relations.addresses import allocate
from catalog.relations.endpoints import endpoints
from catalog.relations.groups import groups
from catalog.relations.hosts import hosts
from catalog.relations.identities import service_identities
from catalog.store.view import MeshSettings
from mesh.config import MeshConfig
from mesh.names import IpAddress, Port
from mesh.objects import EndpointSlice
from mesh.service import Protocol
from mesh.workload import Endpoint, WorkloadKey, WorkloadPort
from tests.meshes.values import (
    DEFAULT,
    explicit,
    http,
    identity,
    inventory,
    match,
    port,
    route_group,
    service,
    service_key,
    split,
    target,
    tcp,
    tcp_route,
    view,
    workload,
)


def slice_of(name: str, number: int, *addresses: str, port_name: str = "") -> EndpointSlice:
    """Make an endpoint slice of a service."""
    return EndpointSlice(name, DEFAULT, f"{name}-1", addresses, ((port_name, number),))


def test_a_workload_backs_what_selects_names_or_lists_it() -> None:
    """Selectors, the primary service of a Service without selector, and slices all tie; others do not."""
    mesh = view(
        service("selected", app="shop"),
        service("shop", app=None),
        service("listed", app=None),
        service("other", app="else"),
        service("elsewhere", app="shop", namespace="other"),
        slice_of("listed", 8080, "10.0.0.1"),
        workload("shop", "10.0.0.1"),
    )
    (only,) = mesh.workloads
    assert mesh.services_of[only] == (service_key("listed"), service_key("selected"), service_key("shop"))


def test_endpoints_come_from_workloads_and_slices_once_each() -> None:
    """A slice that repeats a workload adds nothing; an address that nobody knows has no identity."""
    shop = service("shop", port(80, "web", name="web"))
    mesh = view(
        shop,
        workload("shop-1", "10.0.0.1", WorkloadPort(Port(8080), "web"), app="shop", weight=3),
        workload("shop-2", "10.0.0.2", WorkloadPort(Port(9090), "web"), app="shop", sidecar=False),
        workload("shop-3", "10.0.0.3", WorkloadPort(Port(8080), "web"), app="shop", weight=0),
        slice_of("shop", 8080, "10.0.0.1", "10.0.0.3", "10.9.9.9", port_name="web"),
    )
    key, here = shop.key, Port(80)
    name = mesh.workloads[WorkloadKey(DEFAULT, "shop-1")].proxy_name
    assert name is not None
    assert endpoints(mesh, key, shop.ports[0]) == (
        Endpoint(key, here, IpAddress("10.0.0.1"), Port(8080), identity("shop-1"), weight=3, proxies=(name,)),
        Endpoint(key, here, IpAddress("10.0.0.2"), Port(9090), None),
        Endpoint(key, here, IpAddress("10.9.9.9"), Port(8080), None),
    )


def test_a_slice_cannot_borrow_another_namespaces_workload() -> None:
    """An address of another namespace's workload is nobody's in this one, and that one gets no port."""
    shop = service("shop", app=None)
    mesh = view(shop, slice_of("shop", 8080, "10.0.0.1"), workload("bank", "10.0.0.1", namespace="bank"))
    assert [each.identity for each in endpoints(mesh, shop.key, shop.ports[0])] == [None]
    assert mesh.services_of == {}


def test_the_default_is_closed() -> None:
    """Without a MeshConfig nobody may do anything."""
    assert view().config == MeshConfig(permissive=False, egress=False)


def test_virtual_addresses_do_not_depend_on_order_or_neighbours() -> None:
    """A service keeps its address when others come, whatever the order, unless two hash alike."""
    network = IPv4Network("240.0.0.0/8")
    keys = [service_key(f"s{number}") for number in range(200)]
    shuffled = list(reversed(keys))
    addresses = allocate(keys, network)
    assert allocate(shuffled, network) == addresses
    assert len(set(addresses.values())) == len(keys)
    alone = {key: allocate([key], network)[key] for key in keys}
    assert alone == addresses


def test_virtual_addresses_probe_and_end() -> None:
    """A small network is filled to the last address but those taken, and one more is an error."""
    network = IPv4Network("240.0.0.0/29")
    keys = [service_key(f"s{number}") for number in range(5)]
    found = set(allocate(keys, network, [IpAddress("240.0.0.3")]).values())
    assert found == {f"240.0.0.{number}" for number in (1, 2, 4, 5, 6)}
    with pytest.raises(ValueError, match="5 free addresses for 6 services"):
        allocate([*keys, service_key("one-more")], network, [IpAddress("240.0.0.3")])


def test_hosts_are_what_dns_would_say() -> None:
    """Cluster addresses, short names in the own namespace; headless, a line per endpoint."""
    mesh = view(
        service("fixed", address="10.96.0.1"),
        service("nodes", headless=True),
        service("far", namespace="other", address="10.96.0.2"),
        workload("node-1", "10.0.0.1", app="nodes"),
        workload("node-2", "10.0.0.2", app="nodes"),
        settings=MeshSettings(cluster_domain="mesh.example"),
    )
    short = ("nodes", "nodes.default", "nodes.default.svc", "nodes.default.svc.mesh.example")
    assert hosts(mesh, DEFAULT) == (
        ("10.96.0.1", ("fixed", "fixed.default", "fixed.default.svc", "fixed.default.svc.mesh.example")),
        ("10.0.0.1", (*(f"node-1.{name}" for name in short), *short)),
        ("10.0.0.2", (*(f"node-2.{name}" for name in short), *short)),
        ("10.96.0.2", ("far.other", "far.other.svc", "far.other.svc.mesh.example")),
    )


def test_identities_are_those_with_a_sidecar() -> None:
    """An identity has the names of all services its workloads back; one without a sidecar has none."""
    mesh = view(
        service("shop", app="shop"),
        service("shop-v1", app="shop"),
        workload("shop", "10.0.0.1"),
        workload("client", "10.0.0.2"),
        workload("bare", "10.0.0.3", sidecar=False),
    )
    assert service_identities(mesh) == {
        identity("client"): (),
        identity("shop"): ("shop-v1.default.svc.cluster.local", "shop.default.svc.cluster.local"),
    }


def test_like_proxies_share_a_group() -> None:
    """Replicas in transparent interception are one group; explicit ones are each their own."""
    mesh = view(
        service("shop"),
        workload("shop-1", "10.0.0.1", app="shop", account="shop"),
        workload("shop-2", "10.0.0.2", app="shop", account="shop"),
        workload("shop-3", "10.0.0.3", app="shop", account="canary"),
        workload("own-1", "10.0.1.1", app="shop", account="shop", interception=explicit("127.0.0.1")),
        workload("own-2", "10.0.1.2", app="shop", account="shop", interception=explicit("127.0.0.1")),
        workload("bare", "10.0.0.4", app="shop", account="shop", sidecar=False),
    )
    assert sorted(groups(mesh).values()) == [
        ("own-1-uuid",),
        ("own-2-uuid",),
        ("shop-1-uuid", "shop-2-uuid"),
        ("shop-3-uuid",),
    ]


def test_order_of_input_never_matters() -> None:
    """The same objects in any order give the same groups and policies."""
    things: list[object] = [
        service("shop", port(80), port(3306, 3306, Protocol.TCP)),
        service("shop-v1", app="shop"),
        workload("shop", "10.0.0.1"),
        workload("buyer", "10.0.0.2"),
        workload("buyer-2", "10.0.0.3", app="buyer", account="buyer"),
        route_group("all", match("all", ".*"), match("books", "/books", "GET")),
        tcp_route("any"),
        target("a", "buyer", "shop", http("all", "books")),
        target("b", "buyer", "shop", tcp("any")),
        split("s", "shop", ("shop-v1", 1), ("shop", 2)),
    ]
    expected = None
    for turn in range(len(things)):
        mesh = view(*things[turn:], *reversed(things[:turn]))
        found = {key: (uuids, proxy_policy(mesh, key)) for key, uuids in groups(mesh).items()}
        expected = expected or found
        assert found == expected
    assert inventory(things).workloads
