"""Claims: the keys by which a source knows its objects, and the problems of objects that are defined twice.

Several kinds can describe the same thing, and share one claim. For example, the claim of a Pod is the key of
a Workload with the Pod's name (see mesh.objects).
"""

from collections.abc import Mapping

from meshwright.mesh.kinds import FORMS
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import Origin
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.workload import PodTemplate
from meshwright.specs.codes import Code


def object_under(objects: Mapping[ObjectKey, SourcedObject], claim: ObjectKey) -> SourcedObject | None:
    """Return the object under a claim, of any kind that shares the claim; None if there is no object."""
    for form in claim.forms():
        if (sourced_object := objects.get(form)) is not None:
            return sourced_object
    return None


def repeats(second: SourcedObject, first: SourcedObject) -> bool:
    """Return whether an object repeats the value of the first object as another kind.

    For example, Kubernetes keeps Endpoints and an EndpointSlice of the same name for its own API server.
    """
    return second.key.kind != first.key.kind and second.value == first.value


def duplicate(second: SourcedObject, key: ObjectKey, first: Origin) -> Problem:
    """Return the problem of an object that is defined again, after the first with this key at this place.

    For a pod template the problem is only a warning, because templates are never in force, and overlays and
    patches often repeat one.
    """
    # A pod template describes future Pods only, so a second template cannot contradict a running Pod.
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
    """Return the problem of an object that is ignored, because an earlier source has a different one.

    For workloads and EndpointSlices the problem is a warning, because two sources can see a change of them at
    slightly different moments.
    """
    moves = second.key.claim.kind in FORMS
    text = (
        f"the source {winner} has a different object of this name ({first.origin}); the "
        f"object of {winner} is used, because {winner} has precedence. Remove one of the two objects"
    )
    return Problem(
        code=str(Code.DISPUTED),
        severity=Severity.WARNING if moves else Severity.ERROR,
        origin=second.origin,
        key=second.key,
        expected=text,
    )
