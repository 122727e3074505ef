"""Waves: one computation of the mesh, with the changes that it was made for."""

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
"""How many causes a wave names; of the others it says how many they are."""

ADMISSIONS: Final = "ledger"
CERTIFICATES: Final = "certificates"
SETTINGS: Final = "settings"
PROXIES: Final = "proxies"
WATCHED: Final = "meshwright tap"
"""The sources of what no source of objects holds."""


class Change(enum.StrEnum):
    """What became of an input."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, order=True)
class Cause:
    """One input that is another one than before.

    `kind` is the object's kind, or what it is that is no object (see mesh.kinds): a rejection is of a proxy.
    `name` is `namespace/name`, the name alone where there is no namespace. `origin` is where it
    was read, `file:line (document n)`, or the name of its source with how that came by it.
    """

    kind: Kind
    name: str
    origin: str
    change: Change

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.change} ({self.origin})"

    @property
    def object(self) -> ObjectKey:
        """Return the object's key."""
        namespace, _, name = self.name.rpartition("/")
        return ObjectKey(self.kind, Namespace(namespace), name)


@dataclass(frozen=True, slots=True)
class Wave:
    """One computation: its number from 1, the first causes, sorted, and how many more there were.

    `since` is the moment of the first event it was made for, by the monotonic clock in seconds, `began` when
    it began by the same, `at` by the calendar. A wave without causes is one in which nothing had changed.
    """

    number: int
    causes: tuple[Cause, ...]
    more: int
    since: float
    began: float
    at: datetime


class Causes:
    """Gathers the causes of the next wave."""

    __slots__ = ("_more", "_named")

    def __init__(self) -> None:
        self._named: list[Cause] = []
        self._more = 0

    def note(self, causes: Iterable[Cause]) -> None:
        """Note what changed: the first are named, the others counted."""
        left = iter(causes)
        self._named.extend(itertools.islice(left, NAMED - len(self._named)))
        self._more += sum(1 for _ in left)

    def take(self) -> tuple[tuple[Cause, ...], int]:
        """Return the causes to be named, sorted, and how many more there were; begin anew."""
        named, more = tuple(sorted(self._named)), self._more
        self._named, self._more = [], 0
        return named, more


def causes(view: View, edits: Edits) -> Iterator[Cause]:
    """Yield what edits are about to change in a view."""
    for proxy, admission in edits.admissions.items():
        given = admission is Admission.ADMITTED or view.admissions.held().get(proxy) is Admission.WITHDRAWN
        change = Change.ADDED if given else Change.REMOVED
        yield Cause(kinds.ADMISSION, str(proxy), ADMISSIONS, change)
    if edits.settings is not None and edits.settings != view.settings:
        yield Cause(kinds.SETTINGS, "settings", SETTINGS, Change.CHANGED)
    for service, tapped in edits.taps.items():
        yield Cause(kinds.TAP, str(service), WATCHED, _change(view.taps.held().get(service), tapped))
    held = view.sourced.held()
    for key, sourced in edits.objects.items():
        before = held.get(key)
        found = sourced or before
        if found is not None and not _equal(before, sourced):
            yield Cause(key.kind, key.path, str(found.origin), _change(before, sourced))


def certificate_causes(
    held: Mapping[ServiceIdentity, object], changed: Mapping[ServiceIdentity, object | None]
) -> Iterator[Cause]:
    """Yield the certificates that are about to change."""
    for identity, certificate in changed.items():
        yield Cause(kinds.CERTIFICATE, str(identity), CERTIFICATES, _change(held.get(identity), certificate))


def trust_bundle_cause(trust_domain: str, *, first_ever: bool) -> Cause:
    """Return the cause of other roots."""
    return Cause(
        kinds.TRUST_BUNDLE, trust_domain, CERTIFICATES, Change.ADDED if first_ever else Change.CHANGED
    )


def rejection_cause(proxy: str) -> Cause:
    """Return the cause of what a proxy is served for having rejected something, or for it to try again."""
    return Cause(kinds.REJECTION, proxy, PROXIES, Change.CHANGED)


def _equal(before: SourcedObject | None, after: SourcedObject | None) -> bool:
    """Say whether only the place of an object is another one: nothing but messages depends on it."""
    return before is not None and after is not None and before.value == after.value


def _change(before: object | None, after: object | None) -> Change:
    if before is None:
        return Change.ADDED
    return Change.REMOVED if after is None else Change.CHANGED
