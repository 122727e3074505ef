"""Tests of the status of XMesh objects at a real API server, with the definition of the Gateway API."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from meshwright.mesh.gateway.features import CLAIMED
from tests.kubernetes.conftest import skip_without
from tests.kubernetes.gateway.test_route_status import MERGE, serving
from tests.kubernetes.tools.api_requests import Asking, established, path
from tests.kubernetes.tools.gateway_definitions import mesh_definition
from tools.real_parts.cluster import RunningCluster
from tools.real_parts.parts import GATEWAY_EXPERIMENTS

OURS: Final = "meshwright.dev/mesh-controller"
PENDING: Final = ("Accepted", "Unknown", "Pending", 0)
ACCEPTED: Final = ("Accepted", "True", "Accepted", 1)
FOREIGN: Final = {
    "type": "Audited",
    "status": "True",
    "reason": "Seen",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def mesh(name: str, controller: str = OURS, **spec: object) -> dict[str, Any]:
    """Return an XMesh."""
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha1",
        "kind": "XMesh",
        "metadata": {"name": name},
        "spec": {"controllerName": controller, **spec},
    }


def conditions(item: Any) -> set[tuple[str, str, str, int]]:
    """Return type, status, reason and generation of the conditions."""
    return {
        (one["type"], one["status"], one["reason"], one.get("observedGeneration", 0))
        for one in item.get("status", {}).get("conditions", ())
    }


def features(item: Any) -> list[str]:
    """Return the names of the supported features in their order."""
    return [one["name"] for one in item["status"].get("supportedFeatures", ())]


async def test_meshes_get_their_status_and_others_stay_as_they_are(
    own_cluster: RunningCluster, asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status follows edits and is repaired, foreign conditions stay, and nothing is written twice."""
    skip_without(GATEWAY_EXPERIMENTS)
    monkeypatch.setenv("POD_NAMESPACE", "shop")
    established(asking, mesh_definition())
    with_parameters = {"group": "", "kind": "ConfigMap", "name": "settings", "namespace": "shop"}
    other = mesh("other", "example.org/mesh")
    refused = mesh("refused", parametersRef=with_parameters)
    for document in (mesh("ours"), other, refused):
        assert asking.create(document).status == 201

    async def until(document: dict[str, Any], *expected: tuple[str, str, str, int]) -> Any:
        return await asyncio.to_thread(
            asking.until, path(document), lambda item: conditions(item) >= set(expected)
        )

    ours = mesh("ours")
    async with serving(own_cluster, tmp_path / "state"):
        assert features(await until(ours, ACCEPTED)) == list(CLAIMED) == sorted(CLAIMED)
        item = await until(refused, ("Accepted", "False", "InvalidParameters", 1))
        assert features(item) == []
        foreign = {
            "status": {"conditions": [*item["status"]["conditions"], FOREIGN], "supportedFeatures": []}
        }
        assert asking("PATCH", f"{path(refused)}/status", foreign, MERGE).status == 200
        edit = {"spec": {"parametersRef": None}}
        assert asking("PATCH", path(refused), edit, MERGE).status == 200
        item = await until(refused, (*ACCEPTED[:3], 2), ("Audited", "True", "Seen", 0))
        assert features(item) == list(CLAIMED)
        assert (
            asking("PATCH", f"{path(ours)}/status", {"status": {"supportedFeatures": []}}, MERGE).status
            == 200
        )
        again = await asyncio.to_thread(
            asking.until, path(ours), lambda found: features(found) == list(CLAIMED)
        )
        assert conditions(again) >= {ACCEPTED}
        assert asking.create(mesh("late")).status == 201
        last = await until(mesh("late"), ACCEPTED)
        # The other object was listed before, and a status that is right is not written again.
        assert conditions(asking("GET", path(other)).body) >= {PENDING}
        same = asking("GET", path(mesh("late"))).body
        assert same["metadata"]["resourceVersion"] == last["metadata"]["resourceVersion"]
