"""Check of `metadata`: an unknown field is reported as a misspelling.

Metadata is the same for all kinds, so the check is safe. Without the check, a misspelt `labels` would
silently leave a workload without a Service.
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
"""Fields of ObjectMeta in meta/v1, including earlier versions of Kubernetes."""


def check_metadata_fields(manifest: Manifest) -> None:
    """Warn of each unknown field of metadata, because Kubernetes drops such fields silently."""
    fields = manifest.metadata
    if FIELDS.issuperset(fields.names()):
        return
    for name in sorted(set(fields.names()) - FIELDS):
        fields.warn(name, partial(_unknown, name), Code.UNKNOWN_METADATA)


def _unknown(name: str) -> str:
    near = nearest(name, FIELDS)
    meant = f"; did you mean {near}?" if near else ""
    return f"unknown field of metadata; it is ignored{meant}"
