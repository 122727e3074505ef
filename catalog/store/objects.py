"""The objects behind what a view knows: how each is called, and where it was read."""

from typing import Final

from catalog.store.view import View
from meshwright.mesh.kinds import ENDPOINT_SLICE, WORKLOAD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import FromSource, Origin
from meshwright.mesh.workload import WorkloadKey

ELSEWHERE: Final = FromSource("no source")
"""The origin of what is not there, or no longer."""


def origin_of(view: View, key: ObjectKey) -> Origin:
    """Return where an object was read."""
    sourced = view.sourced.get(key)
    return ELSEWHERE if sourced is None else sourced.origin


def workload_object(view: View, key: WorkloadKey) -> ObjectKey:
    """Return the object key of a workload: that of the Pod it was read from, else that of a Workload."""
    return _written(view, ObjectKey.of(WORKLOAD, key))


def slice_object(view: View, namespace: Namespace, name: str) -> ObjectKey:
    """Return the object key of a slice: that of the Endpoints it was read from, else that of a slice."""
    return _written(view, ObjectKey(ENDPOINT_SLICE, namespace, name))


def _written(view: View, claim: ObjectKey) -> ObjectKey:
    *others, own = claim.forms()
    return next((form for form in others if form in view.sourced), own)
