"""Under which key a source knows an object, and what is said of one that is defined twice."""

from dataclasses import replace
from typing import Final

from mesh.objects import ObjectKey, Origin, Problem, Severity, Sourced
from mesh.workload import PodTemplate
from specs.codes import Code

ALIASES: Final = {"Workload": "Pod", "EndpointSlice": "Endpoints"}
"""Kinds that a source knows as another kind: Pods are workloads, Endpoints are slices."""

_CLAIMED: Final = {alias: kind for kind, alias in ALIASES.items()}


def claim_of(key: ObjectKey) -> ObjectKey:
    """Return the key under which a source knows an object."""
    kind = _CLAIMED.get(key.kind)
    return key if kind is None else replace(key, kind=kind)


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
    return Problem(str(Code.DUPLICATE_OBJECT), severity, second.origin, second.key, "", "", expected)
