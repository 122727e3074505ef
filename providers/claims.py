"""What is said of an object that is defined twice."""

from mesh.objects import ObjectKey, Sourced
from mesh.origins import Origin
from mesh.problems import Problem, Severity
from mesh.workload import PodTemplate
from specs.codes import Code


def repeats(second: Sourced, first: Sourced) -> bool:
    """Say whether an object only says again, as another kind, what the first one says.

    Kubernetes keeps Endpoints and an EndpointSlice of one name for its own API server.
    """
    return second.key.kind != first.key.kind and second.value == first.value


def duplicate(second: Sourced, key: ObjectKey, first: Origin) -> Problem:
    """Say that an object is defined again: it was first, under that key and at that place.

    Of a pod template nothing is in force, whichever counts: overlays and patches may well repeat one.
    """
    severity = Severity.WARNING if isinstance(second.value, PodTemplate) else Severity.ERROR
    expected = f"must be defined once; {key} at {first} comes first and is in force"
    return Problem(
        code=str(Code.DUPLICATE_OBJECT),
        severity=severity,
        origin=second.origin,
        key=second.key,
        expected=expected,
    )
