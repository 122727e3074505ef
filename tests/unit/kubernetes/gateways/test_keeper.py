"""Tests of the keeper of gateways' objects, with an API server that refuses a request once."""

import asyncio
import json
from dataclasses import replace

import pytest

from catalog.store.view import MeshSettings, View
from meshwright.kubernetes.gateways import keeper
from meshwright.kubernetes.gateways.infrastructure import Home
from meshwright.kubernetes.gateways.keeper import GatewayObjects
from meshwright.mesh.gateway.gateways import RoutesFrom
from meshwright.mesh.kinds import GATEWAY
from meshwright.specs.annotations import HOME
from tests.meshes import gateway as g
from tests.unit.kube.scripted_api import Line, ReceivedRequest, ScriptedServer, api_of

DEPLOYMENT = {
    "metadata": {
        "name": "edge-meshwright",
        "namespace": "shop",
        "labels": {HOME: "home"},
        "ownerReferences": [{"kind": GATEWAY.name, "name": "edge"}],
    }
}


class Cluster:
    """A cluster with the Deployment of a gateway that is gone; it refuses the first removal."""

    def __init__(self) -> None:
        self.removed: list[str] = []
        self.is_clear = asyncio.Event()
        self._refuses = True

    async def play(self, asked: ReceivedRequest, line: Line) -> None:
        """Answer a request."""
        if asked.method == "GET":
            return await line.answer({"kind": "List", "metadata": {}, "items": [DEPLOYMENT]})
        assert asked.method == "DELETE", json.dumps(asked.path)
        if self._refuses:
            self._refuses = False
            return await line.refuse(403, "Forbidden", "the roles are not loaded yet")
        self.removed.append(asked.path.split("/")[-2])
        if len(self.removed) == 4:
            self.is_clear.set()
        return await line.answer({"kind": "Status"})


async def test_removal_that_fails_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects of a gateway that is gone are removed at last, soon after the first attempt has failed."""
    monkeypatch.setattr(keeper, "AGAIN_SECONDS", 0.0)
    cluster = Cluster()
    async with ScriptedServer(cluster.play) as server, api_of(server) as api:
        objects = GatewayObjects(api, lambda: View(MeshSettings()), Home("home"), lambda: True)
        ((_, work),) = objects.works()
        keeping = asyncio.create_task(work)
        async with asyncio.timeout(5):
            await cluster.is_clear.wait()
        keeping.cancel()
        await asyncio.wait([keeping])
    assert cluster.removed == ["serviceaccounts", "deployments", "services", "poddisruptionbudgets"]


class EmptyCluster:
    """A cluster without objects of gateways; it notes the ports of the Service that it is given."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self.is_applied = asyncio.Event()

    async def play(self, asked: ReceivedRequest, line: Line) -> None:
        """Answer a request."""
        if asked.method == "GET":
            return await line.answer({"kind": "List", "metadata": {}, "items": []})
        body = json.loads(asked.body)
        if body["kind"] == "Service":
            self.ports = [port["port"] for port in body["spec"]["ports"]]
        if body["kind"] == "PodDisruptionBudget":
            self.is_applied.set()
        return await line.answer(body)


async def test_service_has_the_ports_of_accepted_listeners_of_sets() -> None:
    """A listener of an unsupported protocol, and a set of another namespace, open no port."""
    gateway = replace(g.open_gateway("edge", sets=RoutesFrom.SAME), uid="6f0c")
    near = g.listener_set("near", g.listener("a", 8080), g.listener("b", 8081, protocol="INVALID"))
    far = g.listener_set("far", g.listener("a", 8082), at="default", namespace="far")
    view, cluster = g.view(g.CLASS, gateway, near, far), EmptyCluster()
    async with ScriptedServer(cluster.play) as server, api_of(server) as api:
        ((_, work),) = GatewayObjects(api, lambda: view, Home("home"), lambda: True).works()
        keeping = asyncio.create_task(work)
        async with asyncio.timeout(5):
            await cluster.is_applied.wait()
        keeping.cancel()
        await asyncio.wait([keeping])
    assert cluster.ports == [80, 8080]
