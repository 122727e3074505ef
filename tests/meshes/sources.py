"""A source in memory, beside a directory: what a cluster or a store would be."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from meshwright.mesh.objects import EndpointSlice, ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problems
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import Counts, Freshness
from tests.meshes import values as a


class MemorySource:
    """Says what it is told to say; `objects` may be told before it runs and while it does."""

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
        """Say something else under these keys, None for what is gone."""
        self._objects = self._objects.changed(edits)
        self._changed()

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Answer as told."""
        return self._objects

    def problems(self) -> Problems:
        """Answer as told."""
        return self.said

    def freshness(self) -> Freshness:
        """Answer as told."""
        return self._freshness

    def counts(self) -> Counts:
        """Answer as told."""
        return self.held

    async def first(self) -> None:
        """Have said everything."""

    async def run(self, changed: Callable[[], None]) -> None:
        """Tell of changes until cancelled."""
        self._changed = changed
        await asyncio.Event().wait()


def instead(after: Iterable[object], before: Iterable[object] = ()) -> dict[ObjectKey, SourcedObject | None]:
    """Return how objects change that are these now, and were those before."""
    return {**dict.fromkeys(a.objects(*before)), **a.objects(*after)}


def slices(objects: Mapping[ObjectKey, SourcedObject]) -> list[EndpointSlice]:
    """Return the slices among objects, in their order."""
    return [
        sourced_object.value
        for sourced_object in objects.values()
        if isinstance(sourced_object.value, EndpointSlice)
    ]
