"""All sources of one mesh as one: started in order, merged, and followed by those that follow others."""

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
"""Changed objects by source and kind."""


_NOTHING: Final[Picture[ObjectKey, SourcedObject]] = Picture()


class Sources:
    """Sources in their precedence: those `given`, then those that follow the objects of all.

    `merged` is what they came to when they were looked at last. All of it belongs on the event loop.
    """

    def __init__(self, given: Sequence[Source], following: Sequence[Follower] = ()) -> None:
        self.all: tuple[Source, ...] = (*given, *following)
        self._following = tuple(following)
        self.merged = MergedObjects()

    def take(self) -> Counts:
        """Look at what sources say now; return what has changed since the last time.

        Who follows is told before anybody else sees it.
        """
        before = self.merged
        merged = merge([(each.name, each.objects()) for each in self.all], before)
        if merged is before:
            return {}
        old, found = dict(before.of), Counter[tuple[str, Kind]]()
        for name, objects in merged.of:
            found.update((name, key.kind) for key in objects.since(old.get(name, _NOTHING)))
        changed = merged.since(before) if self._following else {}
        for each in self._following:
            each.follow(changed)
        self.merged = merged
        return found

    def objects(self) -> Mapping[ObjectKey, SourcedObject]:
        """Return everything that is in force, sorted by key; looks at all there is."""
        return self.merged.objects()

    def remarks(self) -> tuple[str, ...]:
        """Say which answer from memory, and since when; why is not for whoever may ask for health."""
        fresh = ((each.name, each.freshness()) for each in self.all)
        return tuple(_degraded(name, found.error_since) for name, found in fresh if found.error)

    async def first(self) -> None:
        """Return when each has said all that it has at the start, one after the other; raise SourceError."""
        for each in self.all:
            await each.first()
            self.take()

    async def settled(self) -> None:
        """Return when those that follow have said what follows from the objects of the last look, or soon."""
        for each in self._following:
            await each.settled()

    def works(self, changed: Callable[[], None]) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield what runs as long as the server does, by name."""
        for each in self.all:
            yield f"{each.name} source", each.run(changed)


def _degraded(name: str, since: datetime | None) -> str:
    began = "" if since is None else f" since {since.isoformat(timespec='seconds')}"
    return (
        f"source {name} is degraded{began}: the objects read before stay in force; "
        "`meshwright sources` shows the reason"
    )
