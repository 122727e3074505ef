"""Waves: each is one computation of the mesh, with the changed inputs as causes."""

import enum
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from catalog.store.edits import Edits
from catalog.store.settings import Admission
from catalog.store.view import View
from meshwright.mesh import kinds
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey, SourcedObject

NAMED: Final = 32
"""Number of causes that a wave names; the others are counted."""

ADMISSIONS: Final = "ledger"
CERTIFICATES: Final = "certificates"
SETTINGS: Final = "settings"
PROXIES: Final = "proxies"
WATCHED: Final = "meshwright tap"
"""Sources of inputs that are not objects of a source."""


class Change(enum.StrEnum):
    """Change of one input of the mesh."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, order=True)
class Cause:
    """One changed input.

    `kind` is the kind of the object, or of an input that is not an object (see `mesh.kinds`): a rejection has
    the kind REJECTION and the name of its proxy. `name` is `namespace/name`, or the name alone for an object
    without a namespace. `origin` is the place, for example `split.yaml:3 (document 2)`, or the name of the
    source and its detail.
    """

    kind: Kind
    name: str
    origin: str
    change: Change

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.change} ({self.origin})"

    @property
    def object(self) -> ObjectKey:
        """Return the key of the changed object."""
        namespace, _, name = self.name.rpartition("/")
        return ObjectKey(self.kind, Namespace(namespace), name)


@dataclass(frozen=True, slots=True)
class Wave:
    """One computation: its number (from 1), the first causes, sorted, and the number of further causes.

    `since` is the time of the first event, and `began` the time when the wave began, both in seconds of the
    monotonic clock; `at` is the date of the beginning. A wave without causes found no change. For example, an
    edit of two TrafficSplits in one file is one wave with two causes.
    """

    number: int
    causes: tuple[Cause, ...]
    more: int
    since: float
    began: float
    at: datetime


class Causes:
    """Collector of the changed inputs behind the next wave."""

    __slots__ = ("_more", "_named")

    def __init__(self) -> None:
        self._named: list[Cause] = []
        self._more = 0

    def note(self, causes: Iterable[Cause]) -> None:
        """Add causes: the first NAMED are kept, the others are counted."""
        left = iter(causes)
        self._named.extend(itertools.islice(left, NAMED - len(self._named)))
        # Counted and not kept: a first wave may have tens of thousands of causes.
        self._more += sum(1 for _ in left)

    def take(self) -> tuple[tuple[Cause, ...], int]:
        """Return the named causes, sorted, with the number of further ones; then start again."""
        named, more = tuple(sorted(self._named)), self._more
        self._named, self._more = [], 0
        return named, more


def causes(view: View, edits: Edits) -> Iterator[Cause]:
    """Yield a cause for each input of the view to be changed by these edits."""
    for proxy, admission in edits.admissions.items():
        # The end of a withdrawal gives traffic back, so it counts as added.
        given = (
            admission is Admission.ADMITTED
            or view.admissions.values_unrecorded().get(proxy) is Admission.WITHDRAWN
        )
        change = Change.ADDED if given else Change.REMOVED
        yield Cause(kinds.ADMISSION, str(proxy), ADMISSIONS, change)
    if edits.settings is not None and edits.settings != view.settings:
        yield Cause(kinds.SETTINGS, "settings", SETTINGS, Change.CHANGED)
    for service, tapped in edits.taps.items():
        yield Cause(
            kinds.TAP, str(service), WATCHED, _change(view.taps.values_unrecorded().get(service), tapped)
        )
    held = view.sourced.values_unrecorded()
    for key, sourced in edits.objects.items():
        before = held.get(key)
        sourced_object = sourced or before
        if sourced_object is not None and not _equal(before, sourced):
            yield Cause(key.kind, key.path, str(sourced_object.origin), _change(before, sourced))


def certificate_causes(
    before: Mapping[ServiceIdentity, object], changed: Mapping[ServiceIdentity, object | None]
) -> Iterator[Cause]:
    """Yield a cause for each service certificate to be added, changed or removed."""
    for identity, certificate in changed.items():
        yield Cause(
            kinds.CERTIFICATE, str(identity), CERTIFICATES, _change(before.get(identity), certificate)
        )


def trust_bundle_cause(trust_domain: str, *, first_ever: bool) -> Cause:
    """Return the cause of a wave for changed CA certificates."""
    return Cause(
        kinds.TRUST_BUNDLE, trust_domain, CERTIFICATES, Change.ADDED if first_ever else Change.CHANGED
    )


def rejection_cause(proxy: str) -> Cause:
    """Return the cause of a wave that replaces a rejected resource by its fallback, or offers it again."""
    return Cause(kinds.REJECTION, proxy, PROXIES, Change.CHANGED)


def _equal(before: SourcedObject | None, after: SourcedObject | None) -> bool:
    """Return whether an object is unchanged except for its place in the source, used in messages only."""
    return before is not None and after is not None and before.value == after.value


def _change(before: object | None, after: object | None) -> Change:
    if before is None:
        return Change.ADDED
    return Change.REMOVED if after is None else Change.CHANGED
