"""Tests of Services without selector: only the port in an EndpointSlice counts."""

from dataclasses import replace

import pytest

from catalog.policy.inbound import inbound_ports
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.groups import group_of
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.service import ServicePort
from meshwright.mesh.workload import Interception, Transparent, WorkloadPort
from tests.meshes import values as a

SHOP = a.service_key("shop")


def _slice(*ports: tuple[str, int], address: str = "10.0.0.1") -> EndpointSlice:
    return EndpointSlice("shop", Namespace("default"), f"shop-{address}", (address,), ports)


@pytest.mark.parametrize("target", [Port(80), "web", "other"])
@pytest.mark.parametrize("how", [Transparent(), a.explicit("127.0.0.1")])
def test_service_without_selector_is_called_at_the_port_of_its_slice(
    target: Port | str, how: Interception
) -> None:
    """Another program may listen at the Service's target port, whatever its name or number."""
    port = replace(a.port(80), target_port=target, name="http")
    service = replace(a.service("shop", port), selector=())
    ports = (WorkloadPort(Port(8080), "web"), WorkloadPort(Port(80), "other"))
    pod = replace(a.workload("x", "10.0.0.1", *ports, account="app"), interception=how)
    view = a.view(service, pod, _slice(("http", 8000)))
    result = endpoints(view, SHOP, port)
    assert [(endpoint.address, endpoint.port, endpoint.identity) for endpoint in result] == [
        ("10.0.0.1", 8000, pod.identity)
    ]
    assert [inbound_port.port for inbound_port in inbound_ports(view, group_of(view, pod))] == [8000]


def test_slice_ports_are_matched_by_name_for_each_slice() -> None:
    """Two slices of a Service may have different ports. A name without a slice has no endpoints."""
    ports = [
        replace(a.port(number), name=name, target_port=Port(number))
        for number, name in ((80, "http"), (90, "metrics"), (100, "none"))
    ]
    service = replace(a.service("shop", *ports), selector=())
    pods = [a.workload(f"x{n}", f"10.0.0.{n}", account="app") for n in (1, 2)]
    first = _slice(("http", 8001), ("metrics", 9001))
    second = _slice(("http", 8002), ("metrics", 9002), address="10.0.0.2")
    view = a.view(service, *pods, first, second)

    def places(port: ServicePort) -> list[tuple[str, int]]:
        return [(endpoint.address, endpoint.port) for endpoint in endpoints(view, SHOP, port)]

    assert [places(inbound_port) for inbound_port in ports] == [
        [("10.0.0.1", 8001), ("10.0.0.2", 8002)],
        [("10.0.0.1", 9001), ("10.0.0.2", 9002)],
        [],
    ]
    inbound = [
        [inbound_port.port for inbound_port in inbound_ports(view, group_of(view, pod))] for pod in pods
    ]
    assert inbound == [[8001, 9001], [8002, 9002]]


def test_service_with_a_selector_keeps_its_target_port() -> None:
    """Endpoint and inbound listener have the same port, because slices are made from the target port."""
    service = a.service("shop")
    pod = a.workload("shop-1", "10.0.0.1", app="shop")
    view = a.view(service, pod)
    number = endpoints(view, SHOP, service.ports[0])[0].port
    assert [inbound_port.port for inbound_port in inbound_ports(view, group_of(view, pod))] == [number]
