"""The objects in force that have a part in an answer, as manifests."""

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
"""So many are told; the steps name them all."""

_PLACES: Final = frozenset({ENDPOINTS, ENDPOINT_SLICE, POD, SERVICE, SERVICE_ACCOUNT, WORKLOAD})
"""Kinds that say what is where, and decide nothing."""


def deciding(view: View, steps: Iterable[Step], because: Collection[ObjectKey]) -> list[Json]:
    """Return the objects that decide, and after them the others that were asked, in the order of the steps.

    Each has its `manifest`, written from what is in force, not from a file or a cluster: what is never kept,
    such as a Secret or most annotations, cannot be in it. Of a kind that is not SMI's it is null, and `value`
    is what is in force, as `/debug/policies` has it.
    """
    asked = (key for step in steps if not step.aside for key, _ in step.objects)
    found = dict.fromkeys((*because, *(key for key in asked if key.kind not in _PLACES)))
    held = [key for key in found if key in view.sourced]
    return [_told(view, key, decides=key in because) for key in held[:MOST]]


def _told(view: View, key: ObjectKey, *, decides: bool) -> Document:
    found = view.sourced[key]
    manifest = written(found.value)
    return {
        "object": str(key),
        "origin": str(found.origin),
        "stale": found.stale,
        "decides": decides,
        "manifest": jsonable(manifest),
        "value": jsonable(found.value) if manifest is None else None,
    }
