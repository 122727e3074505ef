"""Tests of an injector without a configuration file: the defaults are valid as long as the server runs."""

from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.metrics.registry import Metrics
from meshwright.controller.kubernetes.injection_file import InjectionFile
from meshwright.kubernetes.injection.credentials.secret_writer import PodSecrets
from meshwright.kubernetes.injection.webhook.lookup import Lookup
from meshwright.kubernetes.injection.webhook.server import Injection
from meshwright.mesh.config import MeshConfig
from meshwright.providers.merge import MergedObjects
from meshwright.sidecars.registry import DriverRegistry
from tests.unit.kube.scripted_api import ScriptedServer, api_of
from tests.unit.kubernetes.injection.webhook.test_server import POD, namespaces


async def test_pods_get_sidecars_without_a_configuration_file() -> None:
    """No task follows a file, because a task that ends would end the server."""
    nobody: Any = None
    async with ScriptedServer(namespaces) as server, api_of(server) as api:
        made = Injection(
            InjectionFile(None, "meshwright-system", Metrics()),
            Lookup(api, MergedObjects),
            DriverRegistry.discover().drivers,
            {"MESHWRIGHT_SIDECAR_IMAGE": "proxy:1", "MESHWRIGHT_INIT_IMAGE": "proxy:1"},
            MeshConfig,
            lambda _result, _reason, _seconds: None,
            PodSecrets(api, "meshwright-system", nobody, lambda: datetime.now(UTC), lambda: False),
        )
        works = dict(made.works(lambda: None))
        assert [*works] == ["pods' Secrets"]  # this task waits until a Secret is needed
        for work in works.values():
            work.close()
        app = web.Application()
        made.add_to(app)
        request = {"uid": "u1", "operation": "CREATE", "namespace": "shop", "object": POD}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        async with TestClient(TestServer(app)) as client:
            answer = await client.post("/inject?timeout=10s", json=review)
            response = (await answer.json())["response"]
        assert (response["allowed"], response.get("patchType")) == (True, "JSONPatch")
