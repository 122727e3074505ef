"""What stands under one claim, and what is said of an object that is there twice.

A claim is the key under which a source knows an object: that of a Pod is a Workload's (see mesh.objects).
"""

from collections.abc import Mapping

from meshwright.mesh.kinds import FORMS
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import Origin
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.workload import PodTemplate
from meshwright.specs.codes import Code


def held(objects: Mapping[ObjectKey, SourcedObject], claim: ObjectKey) -> SourcedObject | None:
    """Return what stands under a claim, as whichever kind it was written."""
    for form in claim.forms():
        if (found := objects.get(form)) is not None:
            return found
    return None


def repeats(second: SourcedObject, first: SourcedObject) -> bool:
    """Say whether an object only says again, as another kind, what the first one says.

    Kubernetes keeps Endpoints and an EndpointSlice of one name for its own API server.
    """
    return second.key.kind != first.key.kind and second.value == first.value


def duplicate(second: SourcedObject, key: ObjectKey, first: Origin) -> Problem:
    """Say that an object is defined again: it was first, under that key and at that place.

    Of a pod template nothing is in force, whichever counts: overlays and patches may well repeat one.
    """
    # A pod template only describes pods that may come, so that a second one contradicts no running pod.
    severity = Severity.WARNING if isinstance(second.value, PodTemplate) else Severity.ERROR
    expected = (
        f"must be defined only once; {key} at {first} is in force, because it is first. Remove one of the two"
    )
    return Problem(
        code=str(Code.DUPLICATE_OBJECT),
        severity=severity,
        origin=second.origin,
        key=second.key,
        expected=expected,
    )


def disputed(second: SourcedObject, first: SourcedObject, winner: str) -> Problem:
    """Say that a source knows an object otherwise than the one that comes first, and is not heard.

    Of workloads and slices it is a warning: two sources may well see one of them a moment apart.
    """
    moves = second.key.claim.kind in FORMS
    said = (
        f"the source {winner} has a different object of this name ({first.origin}); that one "
        "is used, because the source comes first"
    )
    return Problem(
        code=str(Code.DISPUTED),
        severity=Severity.WARNING if moves else Severity.ERROR,
        origin=second.origin,
        key=second.key,
        expected=said,
    )
