"""`metadata` as Kubernetes has it, of every kind: a field that it does not have is a slip, and is said.

No kind's own fields stand there, so a slip in `labels` would leave a workload without a Service in silence.
"""

from functools import partial
from typing import Final

from meshwright.mesh.problems.spelling import nearest
from meshwright.specs.codes import Code
from meshwright.specs.manifest import Manifest

FIELDS: Final = frozenset(
    {
        "annotations",
        "clusterName",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "initializers",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""The fields of ObjectMeta in meta/v1, those of earlier versions of Kubernetes among them."""


def check_metadata_fields(manifest: Manifest) -> None:
    """Warn of each field of metadata that no object has; Kubernetes drops it without a word."""
    fields = manifest.metadata
    if FIELDS.issuperset(fields.names()):
        return
    for name in sorted(set(fields.names()) - FIELDS):
        fields.warn(name, partial(_unknown, name), Code.UNKNOWN_METADATA)


def _unknown(name: str) -> str:
    near = nearest(name, FIELDS)
    meant = f"; did you mean {near}?" if near else ""
    return f"unknown field of metadata; it has no effect{meant}"
