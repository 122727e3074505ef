"""Tests of the description of a proxy's configuration, in terms of the mesh."""

from dataclasses import replace
from typing import Any

import pytest

from catalog.policy.values.inbound import EveryoneInTheMesh
from catalog.policy.values.outside import OutsideHost, OutsidePort, OutsideRange, OutsideRoute
from catalog.policy.values.proxy import ProxyPolicy, ReachableServices
from catalog.policy.values.route_actions import WeightedBackend
from meshwright.admin.pages.proxies import description as describe
from meshwright.admin.pages.proxies.proxy import policy_of, proxy_page
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ExternalHost
from tests.meshes import values as a
from tests.meshes.route_entries import entry
from tests.unit.admin.conftest import NAME
from xds.protocol.resources.resource import LISTENER, ResourceName


@pytest.fixture
def policies(reading: Any) -> tuple[ProxyPolicy, ProxyPolicy]:
    """Return the policies of store-1 and buyer-1."""
    (server,) = reading.the_proxies
    client = replace(server, name=ProxyName.parse("uuid-2.buyer.shop"))
    proxy_policies = [policy_of(reading, item) for item in (server, client)]
    assert proxy_policies[0] is not None
    assert proxy_policies[1] is not None
    return (proxy_policies[0], proxy_policies[1])


def _texts(lines: list[dict[str, Any]]) -> list[Any]:
    return [line["text"] for line in lines]


def test_inbound_lists_ports_callers_and_the_application(policies: tuple[ProxyPolicy, ProxyPolicy]) -> None:
    """Inbound lines show each port, its permitted callers and requests, and the application.

    A rule is shown with its TrafficTarget.
    """
    server, _ = policies
    assert _texts(describe.listeners(server)) == [
        "inbound port 8080, http, for shop/store, to 127.0.0.1:8080",
        "inbound port 9090, tcp, for shop/store, to 127.0.0.1:9090: no caller is allowed",
    ]
    assert _texts(describe.routes(server)) == [
        "inbound 8080: shop/buyer may send GET,PUT /buy, * * x-kind=b.* (TrafficTarget shop/buyers)",
        "inbound 9090: no caller is allowed",
    ]
    everybody = replace(server, inbound=(replace(server.inbound[0], access=EveryoneInTheMesh()),))
    assert _texts(describe.routes(everybody)) == [
        "inbound 8080: every workload with a certificate of the mesh may send everything"
    ]
    assert _texts(describe.clusters(server)) == [
        "inbound 8080 goes to the application at 127.0.0.1:8080",
        "inbound 9090 goes to the application at 127.0.0.1:9090",
    ]


def test_outbound_lists_services_backends_and_endpoints(policies: tuple[ProxyPolicy, ProxyPolicy]) -> None:
    """Outbound lines show each service's address, backends, expected identities and endpoints."""
    _, client = policies
    service = client.outbound[0]
    (address,) = service.addresses
    assert _texts(describe.listeners(client))[0] == f"outbound shop/store:80, http, at {address}:80"
    assert _texts(describe.routes(client))[0] == "outbound shop/store:80: everything -> shop/store port 8080"
    assert describe.clusters(client)[0] == {
        "direction": "outbound",
        "service": "shop/store",
        "target_port": "8080",
        "http": True,
        "identities": ["shop/store"],
        "server_name": client.service_destinations[0].server_name,
        "endpoints": 1,
        "text": "outbound shop/store port 8080, HTTP, answered by shop/store, 1 endpoint",
    }
    assert describe.endpoints(client)[0] == {
        "service": "shop/store",
        "target_port": "8080",
        "address": "10.0.0.1",
        "port": 8080,
        "weight": 1,
        "locality": "",
        "text": "shop/store port 8080 at 10.0.0.1:8080, weight 1",
    }


def test_split_is_shown_with_its_weights_and_its_name(policies: tuple[ProxyPolicy, ProxyPolicy]) -> None:
    """A split route shows its weighted backends and its TrafficSplit; a route without backends shows 503."""
    service = policies[1].outbound[0]
    key = PolicyKey(Namespace("shop"), "canary")
    shares = tuple(WeightedBackend(service.upstream, port, weight) for port, weight in (("1", 90), ("2", 10)))
    table = (entry(*shares, split=key), entry())
    policy = replace(
        policies[1], reachable=(ReachableServices.from_sorted((replace(service, table=table),)),)
    )
    backends = "shop/store port 1 (weight 90), shop/store port 2 (weight 10)"
    assert _texts(describe.routes(policy)) == [
        f"outbound shop/store:80: everything -> {backends} (TrafficSplit shop/canary)",
        "outbound shop/store:80: everything -> no backend: 503",
    ]


async def test_one_section_or_all_sections_are_shown(reading: Any, now: Any) -> None:
    """Without a section all are shown. With one, only that section is shown, with the name of the proxy."""
    shown: Any = await proxy_page(reading, {"proxy": "store-1"}, now)
    sections = ["listeners", "routes", "clusters", "endpoints", "secrets", "history"]
    assert [item for item in shown if item in sections] == sections
    shown = await proxy_page(reading, {"proxy": "store-1", "section": "history"}, now)
    assert (shown["cn"], [item["type"] for item in shown["history"]]) == ("uuid-1.store.shop", ["route"])
    assert "routes" not in shown


async def test_rejected_resources_are_listed_with_their_reasons(reading: Any, now: Any) -> None:
    """A rejected resource is listed with its known reason, and its type is shown as rejected."""
    assert (await proxy_page(reading, {"proxy": "store-1"}, now))["rejected"] == []
    reading.the_rejected = ((LISTENER, ResourceName("in")), (LISTENER, ResourceName("out")))
    reading.the_refusals = {
        (NAME, LISTENER, ResourceName("in")): "no: TrafficTarget shop/buyers (mesh.yaml:31)"
    }
    shown: Any = await proxy_page(reading, {"proxy": "store-1", "section": "listeners"}, now)
    assert (shown["rejected"], shown["sync"]) == (
        ["listener in: no: TrafficTarget shop/buyers (mesh.yaml:31)", "listener out"],
        {"cluster": "synced", "listener": "nacked"},
    )


def test_external_traffic_is_shown_by_port_range_and_host(policies: tuple[ProxyPolicy, ProxyPolicy]) -> None:
    """Lines for external traffic show port, range and host.

    They also show the permitted requests and their destination.
    """
    get = a.match("get", "/books", "GET")
    hosts = (
        OutsideHost("x.test", (OutsideRoute((get,), ExternalHost("x.test")),)),
        OutsideHost("y.test", (OutsideRoute(None),)),
        OutsideHost("z.test", ()),
    )
    ranges = (
        OutsideRange(server_names=("x.test",), hosts=hosts),
        OutsideRange(("192.0.2.0/24",), connections=True),
    )
    port = OutsidePort(Port(80), ranges, by=(PolicyKey(Namespace("shop"), "e"),))
    client = replace(policies[1], outside=(port,))
    assert _texts(describe.listeners(client))[-2:] == [
        "outside the mesh port 80: TLS for x.test; requests for x.test, y.test, z.test (Egress shop/e)",
        "outside the mesh port 80 at 192.0.2.0/24: every connection (Egress shop/e)",
    ]
    assert _texts(describe.routes(client))[-3:] == [
        "outside the mesh port 80, host x.test: GET /books -> the addresses of x.test in DNS",
        "outside the mesh port 80, host y.test: everything -> the original destination",
        "outside the mesh port 80, host z.test: no request is allowed",
    ]
