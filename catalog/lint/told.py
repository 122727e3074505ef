"""How a problem is put into words, and where it is said to be."""

from typing import Final

from catalog.store.view import View
from mesh.codes import ProblemCode
from mesh.objects import ObjectKey, Origin, Problem, Severity
from mesh.workload import WorkloadKey

ELSEWHERE: Final = Origin("endpoint provider")
"""The origin of what no manifest holds."""

_LONGEST: Final = 200


def say(
    view: View, key: ObjectKey, code: ProblemCode, severity: Severity, field: str, value: str, expected: str
) -> Problem:
    """Return a problem of an object, with the place where the object was read."""
    sourced = view.sourced.get(key)
    origin = sourced.origin if sourced is not None else ELSEWHERE
    shown = value if len(value) <= _LONGEST else value[: _LONGEST - 3] + "..."
    return Problem(code.value, severity, origin, key, field, shown, expected)


def workload_object(view: View, key: WorkloadKey) -> ObjectKey:
    """Return the object key of a workload: that of the Pod it was read from, else that of a Workload."""
    pod = ObjectKey("Pod", key.namespace, key.name)
    return pod if pod in view.sourced else ObjectKey("Workload", key.namespace, key.name)
