"""All sources of a mesh as one: started in order, merged, and given to the sources that follow others."""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import Follower, Source
from meshwright.providers.merge import MergedObjects, merge

Counts = Mapping[tuple[str, Kind], int]
"""Numbers of changed objects by source and kind."""


_NOTHING: Final[Picture[ObjectKey, SourcedObject]] = Picture()


class Sources:
    """Sources in their precedence: the given `sources`, then the followers of all objects.

    `merged` is the result of the last `take`. All methods must be called on the event loop.
    """

    def __init__(self, sources: Sequence[Source], following: Sequence[Follower] = ()) -> None:
        self.all: tuple[Source, ...] = (*sources, *following)
        self._following = tuple(following)
        self.merged = MergedObjects()

    def take(self) -> Counts:
        """Merge the present answers of all sources, and return the changes since the last call.

        Followers receive the changes before `merged` is replaced, so that no other reader sees the objects
        earlier.
        """
        before = self.merged
        merged = merge([(source.name, source.objects()) for source in self.all], before)
        if merged is before:
            return {}
        old, result = dict(before.states), Counter[tuple[str, Kind]]()
        for name, objects in merged.states:
            result.update((name, key.kind) for key in objects.since(old.get(name, _NOTHING)))
        changed = merged.since(before) if self._following else {}
        for follower in self._following:
            follower.follow(changed)
        self.merged = merged
        return result

    def objects(self) -> Mapping[ObjectKey, SourcedObject]:
        """Return all objects that apply, sorted by key; the cost grows with all objects."""
        return self.merged.objects()

    def remarks(self) -> tuple[str, ...]:
        """Return a sentence for each source that answers from memory, with the time since when.

        The reason is left out, because everyone can read the health page.
        """
        fresh = ((source.name, source.freshness()) for source in self.all)
        return tuple(_degraded(name, freshness.error_since) for name, freshness in fresh if freshness.error)

    async def first(self) -> None:
        """Wait for the first complete answer of each source, one after the other; raises SourceError."""
        for source in self.all:
            await source.first()
            self.take()

    async def settled(self) -> None:
        """Wait until followers have answers for the objects of the last `take`, or some need more time."""
        for follower in self._following:
            await follower.settled()

    def works(self, changed: Callable[[], None]) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the task of each source, with a name; they run as long as the server."""
        for source in self.all:
            yield f"{source.name} source", source.run(changed)


def _degraded(name: str, since: datetime | None) -> str:
    began = "" if since is None else f" since {since.isoformat(timespec='seconds')}"
    return (
        f"source {name} is degraded{began}: the objects read before stay in force; "
        "`meshwright sources` shows the reason"
    )
