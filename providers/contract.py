"""What every endpoint provider promises.

A provider answers with pictures (mesh.picture): immutable tables of what it knows at one moment. It makes
each from the one before, with `Inventory.changed` if it knows what has changed and with `Inventory.becoming`
if it has worked out everything anew, so that whoever holds an earlier one finds out what has changed at the
cost of that. A picture made from nothing is right as well, and is compared with the one before in full.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

from mesh.endpoints import Inventory
from mesh.objects import ObjectKey, Sourced
from mesh.problems import Problem, Severity


@dataclass(frozen=True, slots=True)
class Counts:
    """What a source holds: good, in force in its last good form, and refused with nothing in its place."""

    good: int = 0
    stale: int = 0
    refused: int = 0

    @classmethod
    def of(cls, objects: Mapping[ObjectKey, Sourced], stale: int, problems: Iterable[Problem]) -> Self:
        """Count objects in force; refused are those of which errors tell and that are not among them."""
        bad = {each.key for each in problems if each.severity is Severity.ERROR and each.key is not None}
        return cls(len(objects) - stale, stale, len(bad - objects.keys()))


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old a source's answer is.

    `last_event` is when a change was last seen, `last_full_read` when everything was last read without
    error. While the source cannot be read, `error` says why and `error_since` since when. `held` names what
    stays in force although the source says that it is gone (see providers.guard).
    """

    last_event: datetime | None = None
    last_full_read: datetime | None = None
    error: str = ""
    error_since: datetime | None = None
    held: tuple[str, ...] = ()


class EndpointProvider(Protocol):
    """A source of workloads and endpoint slices."""

    @property
    def name(self) -> str:
        """Return the name by which people know the source; unique in one program."""
        ...

    def inventory(self) -> Inventory:
        """Return the last good answer; an error never empties it, and no change is the very same answer."""
        ...

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong in the source, sorted by place."""
        ...

    def freshness(self) -> Freshness:
        """Say how old the answer is."""
        ...

    def counts(self) -> Counts:
        """Count what the source holds; asked every few seconds, so it must not cost what there is."""
        ...

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep the answer current until cancelled, and call `changed` after each change of anything.

        `changed` is called from the event loop; it must be quick and must not raise.
        """
        ...
