"""Follower of a derived value for each object of some kinds: which objects have another value than before."""

from collections.abc import Container, Iterable, Mapping
from typing import Generic, TypeVar

from catalog.store.view import View
from meshwright.engine.derived import DerivedFunction, ObservedValues
from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey, SourcedObject

V = TypeVar("V")


class FollowedValues(Generic[V]):
    """Values of one function of a view and an object's key; used on the event loop, like the view's edits."""

    def __init__(self, function: DerivedFunction[View, [ObjectKey], V], kinds: Container[Kind]) -> None:
        self._function, self._kinds = function, kinds
        self.view: View | None = None
        self._observed: ObservedValues[ObjectKey, V] | None = None

    def apply_edits(self, view: View, edits: Mapping[ObjectKey, SourcedObject | None]) -> None:
        """Start to follow new objects, and stop for removed ones. After another view all objects are new."""
        if self.view is not view or self._observed is None:
            self.view, self._observed = view, ObservedValues(self._function, view)
            edits = view.sourced.values_unrecorded()
        for key, sourced in edits.items():
            if key.kind not in self._kinds:
                continue
            if sourced is None:
                self._observed.discard(key)
            else:
                self._observed.add(key)

    def take_changed(self) -> Iterable[ObjectKey]:
        """Return the objects whose values may have changed since the last call."""
        return () if self._observed is None else self._observed.take_changed()

    def value(self, key: ObjectKey) -> V | None:
        """Return the value of an object; None if the object is not followed."""
        if self._observed is None or key not in self._observed:
            return None
        return self._observed.value(key)
