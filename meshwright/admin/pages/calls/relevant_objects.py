"""Objects involved in the explanation of a request, as manifests."""

from collections.abc import Collection, Iterable
from typing import Final

from catalog.explain import Step
from catalog.store.view import View
from meshwright.admin.jsonable import Document, Json, jsonable
from meshwright.mesh.kinds import (
    ENDPOINT_SLICE,
    ENDPOINTS,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    WORKLOAD,
)
from meshwright.mesh.objects import ObjectKey
from meshwright.specs.smi.manifests import written

MOST: Final = 20
"""Maximum number of objects; the steps name all of them."""

_PLACES: Final = frozenset({ENDPOINTS, ENDPOINT_SLICE, POD, SERVICE, SERVICE_ACCOUNT, WORKLOAD})
"""Kinds that locate workloads and services, and decide nothing."""


def deciding(view: View, steps: Iterable[Step], because: Collection[ObjectKey]) -> list[Json]:
    """Return the deciding objects, then the other involved objects in the order of the steps.

    `manifest` is written from the object in force, not from a file or a cluster. Content that is never
    stored, such as a Secret or most annotations, is missing from it. For kinds other than those of SMI,
    `manifest` is null, and `value` is the value in force as on `/debug/policies`.
    """
    asked = (key for step in steps if not step.aside for key, _ in step.objects)
    result = dict.fromkeys((*because, *(key for key in asked if key.kind not in _PLACES)))
    held = [key for key in result if key in view.sourced]
    return [_object_line(view, key, decides=key in because) for key in held[:MOST]]


def _object_line(view: View, key: ObjectKey, *, decides: bool) -> Document:
    sourced_object = view.sourced[key]
    manifest = written(sourced_object.value)
    return {
        "object": str(key),
        "origin": str(sourced_object.origin),
        "stale": sourced_object.stale,
        "decides": decides,
        "manifest": jsonable(manifest),
        "value": jsonable(sourced_object.value) if manifest is None else None,
    }
