"""Tests of the annotation for the sidecar driver on each kind that may have it."""

import pytest

from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.workload import DRIVER_ANNOTATION, Workload
from tests.meshes.reading import complaints, value

KINDS = {
    "Workload": (
        "apiVersion: meshwright.dev/v1alpha1\nkind: Workload\nspec: {address: 10.0.0.7}\n",
        "namespace: shop",
    ),
    "Pod": (
        "apiVersion: v1\nkind: Pod\nspec: {containers: []}\nstatus: {podIP: 10.0.0.7}\n",
        "namespace: shop",
    ),
    "Namespace": ("apiVersion: v1\nkind: Namespace\n", ""),
}


def _manifest(kind: str, driver: str) -> str:
    body, where = KINDS[kind]
    return f"{body}metadata: {{name: it, annotations: {{{DRIVER_ANNOTATION}: {driver}}}, {where}}}\n"


@pytest.mark.parametrize("kind", ["Workload", "Pod"])
def test_driver_annotation_of_a_workload_or_pod_is_read(kind: str) -> None:
    """The reader does not check whether the driver exists; an empty annotation names none."""
    result = value(_manifest(kind, "document"))
    assert isinstance(result, Workload)
    assert result.driver == "document"
    plain = value(_manifest(kind, "''"))
    assert isinstance(plain, Workload)
    assert plain.driver == ""


def test_namespace_keeps_its_driver_annotation() -> None:
    """The catalog uses the annotation of the Namespace."""
    result = value(_manifest("Namespace", "document"))
    assert isinstance(result, NamespaceObject)
    assert dict(result.annotations)[DRIVER_ANNOTATION] == "document"


@pytest.mark.parametrize("kind", KINDS)
def test_invalid_driver_name_is_refused_with_its_field(kind: str) -> None:
    """The problem names the annotation and its value."""
    assert complaints(_manifest(kind, "'No Name'")) == [
        ("error", "MW1013", f"metadata.annotations.{DRIVER_ANNOTATION}", '"No Name"')
    ]
