"""What every source promises: a directory of manifests, the DNS, a cluster.

A source answers with pictures (mesh.picture): immutable tables of the objects that it knows at one moment.
Workloads and EndpointSlices are objects like others. It makes each picture from the one before, so that
whoever holds an earlier one finds out what has changed at the cost of that. A picture made from nothing is
right as well, and is compared with the one before in full.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol, Self

from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problem, Problems, Severity
from meshwright.mesh.values.picture import Picture


class SourceError(Exception):
    """A source cannot even begin; the message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a source holds: good, in force in its last good form, and refused with nothing in its place."""

    good: int = 0
    stale: int = 0
    refused: int = 0

    @classmethod
    def of(cls, objects: Mapping[ObjectKey, SourcedObject], stale: int, problems: Iterable[Problem]) -> Self:
        """Count objects in force; refused are those of which errors tell and that are not among them."""
        bad = {each.key for each in problems if each.severity is Severity.ERROR and each.key is not None}
        return cls(len(objects) - stale, stale, len(bad - objects.keys()))


@dataclass(frozen=True, slots=True)
class Watch:
    """How objects of one kind are followed, by a source that asks for each kind by itself.

    `name` is the kind's as permissions have it, such as `traffictargets.access.smi-spec.io`; the `namespace`
    is empty where all are followed together. `heard` is when anything was last heard of it, be it that no
    object is new, `last_event` when one was last another, `last_list` when all were last listed. `relists`,
    `events` and `errors`, by reason, count since the start. `error` and `error_since` are as Freshness has
    them; where it is not `needed`, nothing is missing from the answer without it.
    """

    name: str
    namespace: str = ""
    heard: datetime | None = None
    last_event: datetime | None = None
    last_list: datetime | None = None
    relists: int = 0
    events: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    error_since: datetime | None = None
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old a source's answer is.

    `last_event` is when a change was last seen, `last_full_read` when everything was last looked at without
    error. While the source cannot be read, `error` says why and `error_since` since when. `held` names what
    stays in force although the source says that it is gone (see providers.guard). `watches` are what the
    answer is put together from, sorted by name, where that is more than one.
    """

    last_event: datetime | None = None
    last_full_read: datetime | None = None
    error: str = ""
    error_since: datetime | None = None
    held: tuple[str, ...] = ()
    watches: tuple[Watch, ...] = ()


class Source(Protocol):
    """Where objects come from."""

    @property
    def name(self) -> str:
        """Return the name by which people know the source; unique in one program."""
        ...

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Return the objects in force; an error never empties them, and no change is the very same picture.

        Of the kinds that are one (see providers.claims) it holds at most one object of a name.
        """
        ...

    def problems(self) -> Problems:
        """Return what is wrong in the source, sorted by place; it logs what comes and goes itself."""
        ...

    def freshness(self) -> Freshness:
        """Say how old the answer is."""
        ...

    def counts(self) -> Counts:
        """Count what the source holds; asked every few seconds, so it must not cost what there is."""
        ...

    async def first(self) -> None:
        """Return when the source has said all that it has at the start; to be awaited before `run`.

        Raises SourceError where it cannot begin.
        """
        ...

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep the answer current until cancelled, and call `changed` after each change of anything.

        `changed` is called from the event loop; it must be quick and must not raise.
        """
        ...


class Follower(Source, Protocol):
    """A source whose objects follow from those of others: what the DNS is asked for stands in Services."""

    def follow(self, objects: Mapping[ObjectKey, SourcedObject | None]) -> None:
        """Take over which objects are in force now, None for those that are gone; on the event loop."""
        ...

    async def settled(self) -> None:
        """Return when it has said what follows from what it was told last, or that takes its time."""
        ...


CONTRACT: Final = 1
"""The version of `Provider`; another one means that providers must be changed."""


class Provider(Protocol):
    """Somebody else's source, which an entry point in the group `meshwright.providers` leads to.

    What it leads to is called with the provider's options, a mapping of text to text, and returns this; it
    raises ValueError, with a sentence, for options that are wrong. `contract` is the version that it was
    written for. It is asked every `seconds` after its last answer, in a thread of its own, and may block.
    """

    contract: int
    seconds: float

    def manifests(self) -> Iterable[Mapping[str, object]]:
        """Return all objects that there are now, as manifests in JSON's own values.

        Whatever it raises means that it is not known: what it said last stays in force.
        """
        ...
