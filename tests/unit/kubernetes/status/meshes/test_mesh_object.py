"""Tests of the status that an XMesh should have, by the text of the Gateway API."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from meshwright.kubernetes.status.meshes.mesh_object import MeshObject
from meshwright.mesh.gateway.features import CLAIMED, CORE, EXTENDED

NOW: Final = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
OURS: Final = "meshwright.dev/mesh-controller"


def raw(status: dict[str, Any] | None = None, **spec: object) -> dict[str, Any]:
    """Return an XMesh of the API server."""
    return {
        "metadata": {"name": "mesh", "generation": 3},
        "spec": {"controllerName": OURS, **spec},
        "status": status or {},
    }


def test_accepted_mesh_has_all_claimed_features_in_order() -> None:
    """A written status is current, also after a new reading."""
    mesh = MeshObject.parse(raw())
    assert (mesh.is_own, mesh.is_current) == (True, False)
    status = mesh.status(NOW)
    assert status == {
        "conditions": [
            {
                "type": "Accepted",
                "status": "True",
                "reason": "Accepted",
                "message": "meshwright.dev/mesh-controller serves this mesh",
                "observedGeneration": 3,
                "lastTransitionTime": "2026-11-30T12:00:00Z",
            }
        ],
        "supportedFeatures": [{"name": name} for name in sorted((*CORE, *EXTENDED))],
    }
    assert MeshObject.parse(raw(status)).is_current


def test_mesh_with_parameters_is_refused() -> None:
    """The reason is InvalidParameters, the message names the object, and no feature is supported."""
    mesh = MeshObject.parse(raw(parametersRef={"group": "", "kind": "ConfigMap", "name": "settings"}))
    assert (mesh.wanted.status, mesh.wanted.reason) == ("False", "InvalidParameters")
    assert "ConfigMap settings" in mesh.wanted.message
    assert mesh.wanted_features == ()


def test_transition_time_stays_while_the_status_stays() -> None:
    """A new generation is observed without a new transition."""
    mesh = MeshObject.parse(raw(MeshObject.parse(raw()).status(NOW)))
    newer = replace(mesh, generation=4)
    assert not newer.is_current
    condition = newer.wanted.in_transition(newer.accepted, datetime(2027, 1, 1, tzinfo=UTC))
    assert (condition.generation, condition.since) == (4, NOW)


def test_features_are_claimed_once_and_other_controllers_are_left_alone() -> None:
    """The list is sorted, as the specification demands."""
    assert list(CLAIMED) == sorted(set(CLAIMED))
    assert not MeshObject.parse(raw() | {"spec": {"controllerName": "example.org/mesh"}}).is_own
