"""Tests of the keeper of gateways' objects, with an API server that refuses a request once."""

import asyncio
import json

import pytest

from catalog.store.view import MeshSettings, View
from meshwright.kubernetes.gateways import keeper
from meshwright.kubernetes.gateways.infrastructure import Home
from meshwright.kubernetes.gateways.keeper import GatewayObjects
from meshwright.mesh.kinds import GATEWAY
from meshwright.specs.annotations import HOME
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
