"""The contract of a source, for example a directory of manifests, the DNS or a cluster.

A source answers with pictures (`meshwright.mesh.values.picture`): immutable tables of the objects known at
one moment, workloads and EndpointSlices included. A source makes each picture from the previous one, so that
a reader with an earlier picture can find the changes at the cost of these changes only. A picture made from
scratch is correct too, but is compared in full.

`Provider` is the smaller contract for sources in packages of other projects.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol, Self

from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problem, Problems, Severity
from meshwright.mesh.values.picture import Picture


class SourceError(Exception):
    """A source of objects cannot start; the message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of objects: good, stale (the last good form applies), and refused (no form applies)."""

    good: int = 0
    stale: int = 0
    refused: int = 0

    @classmethod
    def count(
        cls, objects: Mapping[ObjectKey, SourcedObject], stale: int, problems: Iterable[Problem]
    ) -> Self:
        """Count the objects that apply, and as refused the objects with an error that do not apply."""
        bad = {
            problem.key
            for problem in problems
            if problem.severity is Severity.ERROR and problem.key is not None
        }
        return cls(len(objects) - stale, stale, len(bad - objects.keys()))


@dataclass(frozen=True, slots=True)
class Watch:
    """State of the watch for one kind, of a source with a watch for each kind.

    `name` is the kind's name in RBAC rules, for example `traffictargets.access.smi-spec.io`; an empty
    `namespace` means all namespaces. `heard` is the time of the last sign of life, including one without a
    new object. `last_event` is the time of the last change, and `last_list` of the last complete list.
    `relists`, `events` and `errors` (by reason) are counted from the start. `error` and `error_since` are as
    in `Freshness`. If `needed` is False, the answer of the source is complete without this watch.
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
    """Age of a source's answer.

    `last_event` is the time of the last change, `last_full_read` the time of the last complete read without
    an error. While the source cannot be read, `error` has the reason and `error_since` its beginning. `held`
    names objects in force although the source reports them as gone (see `providers.guard`). `watches`, sorted
    by name, are the parts of the answer if the source has several.
    """

    last_event: datetime | None = None
    last_full_read: datetime | None = None
    error: str = ""
    error_since: datetime | None = None
    held: tuple[str, ...] = ()
    watches: tuple[Watch, ...] = ()


class Source(Protocol):
    """A source of the mesh's objects, for example a directory or a cluster."""

    @property
    def name(self) -> str:
        """Return the name of the source for people, unique in one program."""
        ...

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Return the objects in force.

        An error never empties the picture. Without a change the result is the identical picture. Kinds with a
        common claim (see `providers.claims`) have at most one object of a name.
        """
        ...

    def problems(self) -> Problems:
        """Return the problems of the source, sorted by place; the source itself logs their start and end."""
        ...

    def freshness(self) -> Freshness:
        """Return the age of the source's objects, and the reason if they may be outdated."""
        ...

    def counts(self) -> Counts:
        """Return the numbers of objects; called every few seconds, so the cost must not grow with them."""
        ...

    async def first(self) -> None:
        """Return when the source has its first complete answer; to be awaited before `run`.

        Raises SourceError if the source cannot start.
        """
        ...

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep the answer current until cancelled, and call `changed` after each change.

        `changed` is called on the event loop; it must be quick and must not raise.
        """
        ...


class Follower(Source, Protocol):
    """A source with objects derived from the objects of others: for example, DNS names come from Services."""

    def follow(self, objects: Mapping[ObjectKey, SourcedObject | None]) -> None:
        """Accept the changed objects, None for a removed object; called on the event loop."""
        ...

    async def settled(self) -> None:
        """Return when the source has answers for the objects of the last `follow`, or some need more time."""
        ...


CONTRACT: Final = 1
"""Version of `Provider`; a new version means that providers must be changed."""


class Provider(Protocol):
    """A source in another project's package, found by an entry point in the group `meshwright.providers`.

    The entry point's object is called with the provider's options, a mapping of text to text, and returns the
    provider. It raises ValueError, with a sentence, for wrong options. `contract` is the version for which
    the provider was written. `manifests` is called `seconds` seconds after the previous answer, in a thread
    of its own, and may block.
    """

    contract: int
    seconds: float

    def manifests(self) -> Iterable[Mapping[str, object]]:
        """Return all present objects as manifests, with JSON values only.

        Any exception means that the objects are unknown, and the previous answer stays in force.
        """
        ...
