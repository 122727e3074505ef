"""The annotation that names a sidecar driver, on each kind that may have it."""

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
def test_a_workload_names_its_driver(kind: str) -> None:
    """Whether there is such a driver is not the reader's question; without the annotation it names none."""
    found = value(_manifest(kind, "document"))
    assert isinstance(found, Workload)
    assert found.driver == "document"
    plain = value(_manifest(kind, "''"))
    assert isinstance(plain, Workload)
    assert plain.driver == ""


def test_a_namespace_keeps_the_annotation() -> None:
    """The catalog looks it up there."""
    found = value(_manifest("Namespace", "document"))
    assert isinstance(found, NamespaceObject)
    assert dict(found.annotations)[DRIVER_ANNOTATION] == "document"


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_a_driver_s_name_is_refused(kind: str) -> None:
    """With the field and the value."""
    assert complaints(_manifest(kind, "'No Name'")) == [
        ("error", "MW1013", f"metadata.annotations.{DRIVER_ANNOTATION}", '"No Name"')
    ]
