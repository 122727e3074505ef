"""Objects behind the contents of a view: their keys and origins."""

from typing import Final

from catalog.store.view import View
from meshwright.mesh.kinds import ENDPOINT_SLICE, WORKLOAD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import FromSource, Origin
from meshwright.mesh.workload import WorkloadKey

ELSEWHERE: Final = FromSource("no source")
"""Origin of missing objects."""


def origin_of(view: View, key: ObjectKey) -> Origin:
    """Return the origin of an object: the place where its manifest was read."""
    sourced = view.sourced.get(key)
    return ELSEWHERE if sourced is None else sourced.origin


def workload_object(view: View, key: WorkloadKey) -> ObjectKey:
    """Return the object key of a workload: the Pod from which it was read, else a Workload."""
    return _written(view, ObjectKey.from_name(WORKLOAD, key))


def slice_object(view: View, namespace: Namespace, name: str) -> ObjectKey:
    """Return the object key of a slice: the Endpoints from which it was read, else an EndpointSlice."""
    return _written(view, ObjectKey(ENDPOINT_SLICE, namespace, name))


def _written(view: View, claim: ObjectKey) -> ObjectKey:
    *others, own = claim.forms()
    return next((form for form in others if form in view.sourced), own)
