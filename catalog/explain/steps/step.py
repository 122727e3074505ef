"""A step of an explanation: a sentence, and the objects with their origins."""

from dataclasses import dataclass

from catalog.store.view import View
from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import Origin
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey

Objects = tuple[tuple[ObjectKey, Origin], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A sentence with objects and their origins; `depth` is the level of indentation, from 0.

    `aside` marks a step about other clients, whose objects have no part in the answer.
    """

    text: str
    objects: Objects = ()
    depth: int = 0
    aside: bool = False


def origin_of(view: View, kind: Kind, key: PolicyKey | ServiceKey) -> Objects:
    """Return an object with the place of its manifest; empty if no manifest contains the object."""
    return origin_of_object(view, ObjectKey.from_name(kind, key))


def origin_of_object(view: View, key: ObjectKey) -> Objects:
    """Return an object with the place of its manifest; empty if no manifest contains the object."""
    sourced_object = view.sourced.get(key)
    return () if sourced_object is None else ((sourced_object.key, sourced_object.origin),)
