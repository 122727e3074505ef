"""Tests of workloads and services with addresses of both families."""

from dataclasses import replace

import pytest

from catalog.policy.outbound import called_at
from catalog.relations.backends.addresses import called_addresses
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.hosts import hosts
from catalog.store.settings import MeshSettings
from meshwright.mesh.names import IpAddress, Namespace
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.workload import Endpoint, Health, Interception, Transparent, Workload
from tests.meshes import values as a

KEY, PORT = a.service_key("shop"), a.port(80)
POLICY = (a.route_group("all", a.match("all")), a.target("t", "client", "shop", a.http("all")))
BOTH, IPV4 = Transparent(ipv6=True), Transparent()


def _pod(*addresses: str, how: Interception = BOTH, sidecar: bool = True) -> Workload:
    workload = a.workload("shop-1", addresses[0], app="shop", account="shop", sidecar=sidecar)
    others = tuple(map(IpAddress, addresses[1:]))
    return replace(workload, other_addresses=others, interception=how)


def _slice(name: str, *ready: str, unready: tuple[str, ...] = ()) -> EndpointSlice:
    return EndpointSlice("shop", Namespace("default"), name, ready, (("", 8080),), unready=unready)


def _called(result: tuple[Endpoint, ...]) -> list[tuple[IpAddress, ...]]:
    return [endpoint.addresses for endpoint in result]


@pytest.mark.parametrize(
    ("pod", "addresses"),
    [
        (_pod("10.0.0.1", "fd00::1"), ("10.0.0.1", "fd00::1")),
        (_pod("fd00::1", "10.0.0.1"), ("fd00::1", "10.0.0.1")),
        (_pod("10.0.0.1", "fd00::1", how=IPV4), ("10.0.0.1",)),
        (_pod("fd00::1", "10.0.0.1", how=IPV4), ("10.0.0.1",)),
        (_pod("fd00::1", how=IPV4), ("fd00::1",)),
        (_pod("fd00::1", "10.0.0.1", how=a.explicit("127.0.0.1")), ("fd00::1",)),
    ],
)
def test_workload_is_one_endpoint_at_the_addresses_that_its_sidecar_captures(
    pod: Workload, addresses: tuple[str, ...]
) -> None:
    """IPv6 addresses count only if the rules capture IPv6. A slice of each family changes nothing."""
    slices = [_slice(f"shop-{number}", address) for number, address in enumerate(pod.addresses)]
    for more in ([], slices):
        assert _called(endpoints(a.view(a.service("shop"), pod, *more), KEY, PORT)) == [addresses]


def test_manual_slices_of_both_families_are_one_endpoint_for_each_sidecar() -> None:
    """This holds at a port of the slices only. The better health of the two addresses counts."""
    service = replace(a.service("shop"), selector=())
    second = replace(
        a.workload("shop-2", "10.0.0.2", account="shop"),
        interception=IPV4,
        other_addresses=(IpAddress("fd00::2"),),
    )
    slices = _slice("by-4", "10.0.0.2", unready=("10.0.0.1",)), _slice("by-6", "fd00::1", "fd00::2")
    elsewhere = [replace(endpoint_slice, ports=(("", 8081),)) for endpoint_slice in slices]
    result = endpoints(a.view(service, _pod("10.0.0.1", "fd00::1"), second, *elsewhere), KEY, PORT)
    assert [(endpoint.addresses, endpoint.health) for endpoint in result if endpoint.port == 8081] == [
        (("10.0.0.2",), Health.READY),
        (("fd00::1", "10.0.0.1"), Health.READY),
    ]


def test_addresses_without_a_known_sidecar_remain_separate_endpoints() -> None:
    """Two such addresses may belong to one program or to two."""
    result = endpoints(a.view(a.service("shop"), _slice("x", "10.0.0.7", "fd00::7")), KEY, PORT)
    assert _called(result) == [("10.0.0.7",), ("fd00::7",)]


def test_headless_service_is_called_at_both_addresses_of_its_workload() -> None:
    """The DNS has both addresses, and so do the host names."""
    view = a.view(a.service("shop", headless=True), _pod("10.0.0.1", "fd00::1"), *POLICY)
    places = called_at(view, a.identity("client"), KEY, PORT)
    assert [(place.address, place.port) for place in places] == [("10.0.0.1", 8080), ("fd00::1", 8080)]
    assert [(address, names[0]) for address, names in hosts(view, Namespace("default"))] == [
        ("10.0.0.1", "shop-1.shop"),
        ("fd00::1", "shop-1.shop"),
    ]


def test_service_without_an_address_has_a_virtual_one_of_each_family() -> None:
    """Both end in the same bits. Host names resolve to the IPv4 address."""
    view = a.view(a.service("shop"), settings=MeshSettings())
    v4, v6 = called_addresses(view, view.services[KEY])
    assert v4.startswith("24")
    octets = [int(item) for item in v4.split(".")]
    assert v6 == f"2001:2::{octets[0] * 256 + octets[1]:x}:{octets[2] * 256 + octets[3]:x}"
    assert [address for address, _ in hosts(view, Namespace("default"))] == [v4]
