"""A source in memory beside a directory, in place of a cluster or another store."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from meshwright.mesh.objects import EndpointSlice, ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problems
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import Counts, Freshness
from tests.meshes import values as a


class MemorySource:
    """A source with given answers; `objects` may be changed before it runs and while it does."""

    def __init__(
        self,
        name: str,
        objects: Mapping[ObjectKey, SourcedObject] | None = None,
        freshness: Freshness | None = None,
    ) -> None:
        self.name = name
        self.said: Problems = ()
        self.held = Counts()
        self._objects = Picture(objects)
        self._freshness = freshness or Freshness()
        self._changed: Callable[[], None] = lambda: None

    def change(self, edits: Mapping[ObjectKey, SourcedObject | None]) -> None:
        """Change the objects under these keys; None removes one."""
        self._objects = self._objects.changed(edits)
        self._changed()

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Return the given objects."""
        return self._objects

    def problems(self) -> Problems:
        """Return the given problems."""
        return self.said

    def freshness(self) -> Freshness:
        """Return the given freshness."""
        return self._freshness

    def counts(self) -> Counts:
        """Return the given counts."""
        return self.held

    async def first(self) -> None:
        """Return at once, because all objects are known."""

    async def run(self, changed: Callable[[], None]) -> None:
        """Report changes until cancelled."""
        self._changed = changed
        await asyncio.Event().wait()


def instead(after: Iterable[object], before: Iterable[object] = ()) -> dict[ObjectKey, SourcedObject | None]:
    """Return the changes from the objects `before` to the objects `after`."""
    return {**dict.fromkeys(a.objects(*before)), **a.objects(*after)}


def slices(objects: Mapping[ObjectKey, SourcedObject]) -> list[EndpointSlice]:
    """Return the slices among objects, in their order."""
    return [
        sourced_object.value
        for sourced_object in objects.values()
        if isinstance(sourced_object.value, EndpointSlice)
    ]
