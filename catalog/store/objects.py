"""The objects behind what a view knows: how each is called, and where it was read."""

from typing import Final

from catalog.store.view import View
from mesh.objects import ObjectKey, Origin
from mesh.workload import WorkloadKey

ELSEWHERE: Final = Origin("endpoint provider")
"""The origin of what no manifest holds."""


def origin_of(view: View, key: ObjectKey) -> Origin:
    """Return where an object was read."""
    sourced = view.sourced.get(key)
    return ELSEWHERE if sourced is None else sourced.origin


def workload_object(view: View, key: WorkloadKey) -> ObjectKey:
    """Return the object key of a workload: that of the Pod it was read from, else that of a Workload."""
    pod = ObjectKey("Pod", key.namespace, key.name)
    return pod if pod in view.sourced else ObjectKey("Workload", key.namespace, key.name)
