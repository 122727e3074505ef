"""Tests of unknown fields in metadata."""

import pytest

from meshwright.specs.kinds import READ
from tests.meshes.reading import reading

WORKLOAD = (
    "apiVersion: meshwright.dev/v1alpha1\nkind: Workload\n"
    "metadata: {{name: a, {}}}\nspec: {{address: 10.0.0.7}}"
)
DEPLOYMENT = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a}}\nspec: {{template: {{metadata: {{{}}}}}}}"
)


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        (WORKLOAD.format("lables: {app: a}"), "metadata.lables", "; did you mean labels?"),
        (WORKLOAD.format("annotation: {a: b}"), "metadata.annotation", "; did you mean annotations?"),
        (WORKLOAD.format("Labels: {app: a}"), "metadata.Labels", "; did you mean labels?"),
        (WORKLOAD.format("zzz: 1"), "metadata.zzz", ""),
        (DEPLOYMENT.format("label: {app: a}"), "spec.template.metadata.label", "; did you mean labels?"),
    ],
)
def test_unknown_metadata_field_is_a_warning_with_the_probable_name(
    text: str, field: str, expected: str
) -> None:
    """The object is in force, but a workload without its labels belongs to no Service."""
    manifest_reading = reading(text)
    (problem,) = manifest_reading.problems
    assert (problem.severity, problem.code, problem.field) == ("warning", "MW1027", field)
    assert problem.expected == f"unknown field of metadata; it is ignored{expected}"
    assert len(manifest_reading.objects) == 1


def test_unknown_metadata_field_is_reported_for_every_kind() -> None:
    """All readers check metadata."""
    for reader in READ.values():
        head = f"apiVersion: {reader.api_versions[-1]}\nkind: {reader.kind.name}"
        text = f"{head}\nmetadata: {{name: a, lables: {{}}}}\ndata: {{ca.crt: a}}"
        assert "metadata.lables" in [problem.field for problem in reading(text).problems]


def test_metadata_written_by_the_api_server_is_accepted() -> None:
    """These are the fields that `kubectl get -o yaml` prints."""
    written = (
        "uid: 0c1f, resourceVersion: '7', generation: 2, creationTimestamp: null, selfLink: /x, "
        "generateName: a-, finalizers: [], ownerReferences: [], managedFields: [{manager: kubectl}], "
        "deletionTimestamp: null, deletionGracePeriodSeconds: 30"
    )
    assert reading(WORKLOAD.format(written)).problems == ()
