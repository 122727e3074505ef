"""Tests of a server with a directory and another source of objects, such as a cluster."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from meshwright.controller.parts import core
from meshwright.controller.settings.settings import Settings
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.providers.directory.source import DirectorySource
from meshwright.providers.sources import Sources
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.feature.identity.conftest import serve
from tests.meshes import values as a
from tests.meshes.sources import MemorySource
from xds.protocol.resources.resource import ENDPOINT

__all__ = ["serve"]

DEADLINE = 20.0
Serve = Callable[..., Awaitable[Any]]
NAME = "buyer-1.buyer.shop"
CLUSTER = "shop/store|18080"
IN_FILE = """
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: %s, namespace: shop, labels: {app: %s}}
spec: {address: %s, uuid: %s, serviceAccount: %s, ports: [{port: 18080}]}
"""
BUYER = IN_FILE % ("buyer-1", "buyer", "10.0.0.9", "buyer-1", "buyer")
ONE = IN_FILE % ("one", "store", "10.0.0.1", "one", "store")


def _in_cluster(*things: object) -> dict[ObjectKey, SourcedObject]:
    sourced_objects = a.objects(*things)
    return {
        key: replace(sourced_object, origin=InCluster("east", "17"))
        for key, sourced_object in sourced_objects.items()
    }


def _store(name: str, address: str) -> object:
    return a.workload(name, address, app="store", account="store", namespace="shop")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemorySource:
    """A second source of the server, beside its directory, which has precedence."""
    made = MemorySource("cluster", _in_cluster(MeshConfig(permissive=True), _store("two", "10.0.0.2")))

    def sources(settings: Settings, _: object, __: object, clock: Callable[[], datetime]) -> Sources:
        assert settings.mesh is not None
        return Sources((DirectorySource(settings.mesh, clock), made))

    monkeypatch.setattr(core, "sources_of", sources)
    return made


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
            if sorted(endpoint.socket_address.address for endpoint in endpoints) == list(expected):
                return


async def test_directory_and_cluster_form_one_mesh(serve: Serve, cluster: MemorySource) -> None:
    """The caller is in a file, the endpoints are in both, and changes of either reach the caller."""
    server = await serve(BUYER, ONE, endpoint_admission="off", verify=True)
    async with server.client(server.certificate(NAME)) as client, asyncio.timeout(DEADLINE):
        await client.ask(NAME)
        assert CLUSTER in await client.names()
        await client.call.write(
            discovery_pb2.DeltaDiscoveryRequest(type_url=ENDPOINT, resource_names_subscribe=[CLUSTER])
        )
        await _until_addresses(client, "10.0.0.1", "10.0.0.2")
        cluster.change(_in_cluster(_store("three", "10.0.0.3")))
        await _until_addresses(client, "10.0.0.1", "10.0.0.2", "10.0.0.3")
        server.write(BUYER)
        await _until_addresses(client, "10.0.0.2", "10.0.0.3")
        cluster.change({a.object_key(_store("two", "10.0.0.2")): None})
        await _until_addresses(client, "10.0.0.3")
    assert await server.metric("meshwright_verification_differences_total") == 0
    answer = await server.ask("GET", "/debug/sources")
    assert [source["name"] for source in answer["sources"]] == ["cluster", "directory"]


async def test_object_in_two_sources_is_reported_and_the_directorys_is_used(
    serve: Serve, cluster: MemorySource
) -> None:
    """The problem names both origins. When the file's object is deleted, the other is used."""
    cluster.change(_in_cluster(_store("one", "10.0.0.7")))
    server = await serve(BUYER, ONE, endpoint_admission="off")
    answer = await server.ask("GET", "/debug/policies")
    (response,) = (problem for problem in answer["problems"] if problem["code"] == "MW1108")
    assert (response["object"], response["origin"]) == ("Workload shop/one", "east (resourceVersion 17)")
    (one,) = (item for item in answer["objects"] if item["name"] == "one")
    assert one["origin"].startswith("mesh.yaml:")
    where = (
        f"({one['origin']}); the object of directory is used, because directory has precedence. "
        "Remove one of the two objects"
    )
    assert response["expected"] == f"the source directory has a different object of this name {where}"
    server.write(BUYER)
    async with asyncio.timeout(DEADLINE):
        while any(problem["code"] == "MW1108" for problem in answer["problems"]):
            await asyncio.sleep(0.02)
            answer = await server.ask("GET", "/debug/policies")
    (one,) = (item for item in answer["objects"] if item["name"] == "one")
    assert (one["origin"], one["value"]["address"]) == ("east (resourceVersion 17)", "10.0.0.7")
