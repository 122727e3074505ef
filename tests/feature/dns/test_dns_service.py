"""Tests of a Service with a DNS name, from a real DNS server through the whole control plane to a client."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.feature.dns.dnsmasq import DEADLINE, needs_dnsmasq, running
from tests.meshes import texts
from xds.protocol.resources.resource import ENDPOINT

pytestmark = needs_dnsmasq
Serve = Callable[..., Awaitable[Any]]
NAME = "buyer-1.buyer.shop"
CLUSTER = "shop/db|8080"
FOUND = """
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop, annotations: {meshwright.dev/dns: db.mesh.test}}
spec: {ports: [{name: tcp, port: 80, targetPort: 8080}]}
"""
SLICE = """
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-dns, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{name: tcp, port: 8080}]
endpoints: [{addresses: [10.0.0.2]}]
"""


def workload(name: str, address: str) -> str:
    """Return the manifest of a workload with a sidecar."""
    more = "ports: [{port: 8080}]"
    return texts.workload(f"{name}-1", address, app=None, account=name, spec=more)


async def _until_addresses(client: Any, *expected: str) -> None:
    """Read responses until the cluster has exactly these endpoints."""
    while True:
        response = await client.receive()
        for resource in response.resources if response.type_url == ENDPOINT else ():
            cluster_load_assignment = endpoint_pb2.ClusterLoadAssignment()
            assert resource.resource.Unpack(cluster_load_assignment)
            endpoints = [
                lb_endpoint.endpoint.address
                for place in cluster_load_assignment.endpoints
                for lb_endpoint in place.lb_endpoints
            ]
            sockets = sorted(
                (endpoint.socket_address.address, endpoint.socket_address.port_value)
                for endpoint in endpoints
            )
            if sockets == [(item, 8080) for item in expected]:
                return


async def _until(server: Any, path: str, condition: Callable[[Any], object]) -> Any:
    async with asyncio.timeout(DEADLINE):
        while not condition(result := await server.ask("GET", path)):
            await asyncio.sleep(0.02)
    return result


async def test_zone_change_reaches_a_proxy(serve: Serve, tmp_path: Path) -> None:
    """The client follows the name to another workload.

    A missing name is held, and an unanswered one is stale.
    """
    with running(tmp_path / "dnsmasq") as dns:
        dns.zone(db=["10.0.0.1"])
        server = await serve(
            *(texts.PERMISSIVE, FOUND, workload("buyer", "10.0.0.9")),
            *(workload("one", "10.0.0.1"), workload("two", "10.0.0.2")),
            endpoint_admission="off",
            dns_nameservers=dns.nameserver,
            dns_floor_seconds=0.05,
            dns_timeout_seconds=0.2,
            verify=True,
        )
        async with server.client(server.certificate(NAME)) as client, asyncio.timeout(DEADLINE):
            await client.ask(NAME)
            assert CLUSTER in await client.names()
            await client.call.write(
                discovery_pb2.DeltaDiscoveryRequest(type_url=ENDPOINT, resource_names_subscribe=[CLUSTER])
            )
            await _until_addresses(client, "10.0.0.1")
            dns.zone(db=["10.0.0.2"])
            await _until_addresses(client, "10.0.0.2")
        await server.counted("meshwright_verifications_total", 2)
        assert await server.metric("meshwright_verification_differences_total") == 0
        dns.zone(other=["10.0.0.7"])
        # A late answer is an error until the next answer.
        answer = await _until(server, "/debug/sources", lambda result: _held(result["sources"][1]))
        (_, source) = answer["sources"]
        assert (source["name"], source["held"], source["error"]) == ("dns", ["shop/db"], None)
        assert source["objects"] == {"good": 1, "stale": 0, "refused": 0}
        answer = await _until(server, "/debug/policies", lambda result: _said(result, "MW1110"))
        assert _said(answer, "MW1110") == ["Service shop/db"]
        dns.stop()
        await _until(server, "/debug/sources", lambda result: result["sources"][1]["objects"]["stale"])
        answer = await _until(server, "/debug/policies", lambda result: _said(result, "MW1111"))
        assert _said(answer, "MW1111") == ["Service shop/db"]


def _held(source: Any) -> bool:
    return bool(source["held"]) and source["error"] is None


async def test_slice_in_the_directory_has_precedence_over_dns(serve: Serve, tmp_path: Path) -> None:
    """Of two slices with one name the directory's is used, and the problem names both origins."""
    with running(tmp_path / "dnsmasq") as dns:
        dns.zone(db=["10.0.0.1"])
        server = await serve(
            *(texts.PERMISSIVE, FOUND, SLICE, workload("buyer", "10.0.0.9")),
            *(workload("one", "10.0.0.1"), workload("two", "10.0.0.2")),
            endpoint_admission="off",
            dns_nameservers=dns.nameserver,
        )
        async with server.client(server.certificate(NAME)) as client, asyncio.timeout(DEADLINE):
            await client.ask(NAME)
            assert CLUSTER in await client.names()
            await client.call.write(
                discovery_pb2.DeltaDiscoveryRequest(type_url=ENDPOINT, resource_names_subscribe=[CLUSTER])
            )
            await _until_addresses(client, "10.0.0.2")
        policies = await server.ask("GET", "/debug/policies")
        (answer,) = (problem for problem in policies["problems"] if problem["code"] == "MW1108")
        (found,) = (item for item in policies["objects"] if item["name"] == "db-dns")
        where = (
            f"({found['origin']}); the object of directory is used, because directory has precedence. "
            "Remove one of the two objects"
        )
        assert answer["object"] == "EndpointSlice shop/db-dns"
        assert answer["expected"] == f"the source directory has a different object of this name {where}"
        assert found["origin"].startswith("mesh.yaml:")
        assert answer["origin"] == f"dns (db.mesh.test at {dns.nameserver})"


def _said(policies: Any, code: str) -> list[str]:
    return [problem["object"] for problem in policies["problems"] if problem["code"] == code]
