"""Digest of the objects that a server has read, by which servers of one mesh notice that theirs differ."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from meshwright.admin.jsonable import jsonable
from meshwright.delivery.timing.time_slices import Slices
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.providers.merge import MergedObjects

LOOK_SECONDS: Final = 2.0
"""Seconds between two looks for changed objects."""

_BITS: Final = 128


class InputDigest:
    """Digest of the merged objects. Each look costs time for the changed objects only.

    The digest is a sum over all objects, so it does not depend on the order in which they were read.
    """

    def __init__(self) -> None:
        self._merged = MergedObjects()
        self._parts: dict[ObjectKey, int] = {}
        self._sum = 0

    @property
    def text(self) -> str:
        """Return the digest of the objects at the last look, and their number, for example `214-9c41…`."""
        return f"{len(self._parts)}-{self._sum:0{_BITS // 4}x}"

    def steps(self, merged: MergedObjects) -> Iterator[str | None]:
        """Yield `None` after each changed object, and the digest at the end."""
        edits = merged.since(self._merged)
        self._merged = merged
        for key, sourced in edits.items():
            before = self._parts.pop(key, 0)
            part = 0 if sourced is None else object_digest(sourced)
            if sourced is not None:
                self._parts[key] = part
            self._sum = (self._sum - before + part) % 2**_BITS
            yield None
        yield self.text

    async def following(self, merged: Callable[[], MergedObjects], say: Callable[[str], None]) -> None:
        """Call `say` with each new digest, until cancelled."""
        while True:
            before = self.text
            after = await Slices().result(self.steps(merged()))
            if after != before:
                say(after)
            await asyncio.sleep(LOOK_SECONDS)


def object_digest(sourced: SourcedObject) -> int:
    """Return the digest of an object in force, the same in every process; the origin does not count."""
    key = sourced.key
    named = [key.kind.full, key.namespace, key.name]
    text = json.dumps([named, jsonable(sourced.value)], sort_keys=True, ensure_ascii=False)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: _BITS // 8])


class DifferingInputs:
    """Time for which the digests of the servers have differed. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: float | None = None

    def look(self, digests: Iterable[str]) -> None:
        """Compare the digests of all servers; a server without a digest has not read its sources yet."""
        if len({digest for digest in digests if digest}) < 2:
            self._since = None
        elif self._since is None:
            self._since = self._clock()

    def seconds(self) -> float | None:
        """Return the time in seconds for which they have differed without a break, None if they are equal."""
        return None if self._since is None else self._clock() - self._since
