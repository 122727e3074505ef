"""Roll-outs: which of the proxies that the last change of an object concerned have applied it.

A proxy is concerned that is connected when the change is published, and whose configuration that changes. It
has applied the change when it has acknowledged what changed of what it asks for, or what has replaced that
since. One that goes meanwhile is counted no more: what it is served when it comes back is nobody's roll-out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from meshwright.delivery.quarantine.acknowledged_resources import Acknowledged
from meshwright.mesh.objects import ObjectKey
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import ResourceName, TypeUrl
from xds.protocol.resources.snapshot import Snapshot

Names = Mapping[TypeUrl, frozenset[ResourceName]] | None
"""What has changed for a proxy, by type; None where it may be everything."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How many proxies have applied a change, of how many."""

    applied: int
    of: int

    @property
    def is_done(self) -> bool:
        """Whether all have."""
        return self.applied == self.of


class ConnectedProxies(Protocol):
    """What can be asked of a proxy."""

    def acknowledged(self, node: NodeKey) -> Acknowledged | None:
        """Return what it has acknowledged; None where it is not connected."""

    def served(self, node: NodeKey) -> Snapshot | None:
        """Return what it is served."""


@dataclass(slots=True)
class _Rollout:
    """One change of one object, or of several that have changed together: for them it is the same."""

    keys: set[ObjectKey]
    waiting: dict[NodeKey, Names]
    applied: int = 0


class Rollouts:
    """The last roll-out of each object that was changed. `look` costs who has not applied them yet."""

    def __init__(self, here: ConnectedProxies) -> None:
        self._here = here
        self._of: dict[ObjectKey, _Rollout] = {}

    @property
    def is_pending(self) -> bool:
        """Whether anybody is waited for."""
        return any(each.waiting for each in self._of.values())

    def begin(self, keys: Iterable[ObjectKey], concerned: Mapping[NodeKey, Names]) -> None:
        """Take it that these objects have changed for these proxies, whatever was before."""
        self._put(_Rollout(set(keys), dict(concerned)))

    def extend(self, keys: Iterable[ObjectKey], concerned: Mapping[NodeKey, Names]) -> None:
        """Add to roll-outs that are published in parts: no proxy is in two of them."""
        for rollout, those in self._together(keys):
            own = rollout
            if those != rollout.keys:  # from now on it is theirs alone
                own = self._put(replace(rollout, keys=those, waiting=dict(rollout.waiting)))
            own.waiting.update(concerned)

    def renew(self, keys: Iterable[ObjectKey], concerned: Mapping[NodeKey, Names]) -> None:
        """Take it that they have changed again, before or after everybody has applied the last change.

        Who has not is waited for still; who has is counted anew if this concerns it.
        """
        for rollout, those in self._together(keys):
            both = {node: _all(rollout.waiting.get(node, {}), names) for node, names in concerned.items()}
            self._put(_Rollout(those, {**rollout.waiting, **both}))

    def _together(self, keys: Iterable[ObjectKey]) -> Iterable[tuple[_Rollout, set[ObjectKey]]]:
        """Return these objects by the roll-outs that they share; those that have none share a new one."""
        new = _Rollout(set(), {})
        found: dict[int, tuple[_Rollout, set[ObjectKey]]] = {}
        for key in keys:
            rollout = self._of.get(key, new)
            found.setdefault(id(rollout), (rollout, set()))[1].add(key)
        return found.values()

    def forget(self, key: ObjectKey) -> None:
        """Forget an object that is gone."""
        if (rollout := self._of.pop(key, None)) is not None:
            rollout.keys.discard(key)

    def progress(self, key: ObjectKey) -> Progress | None:
        """Return how far the last change of an object has come; None where none was seen."""
        found = self._of.get(key)
        return None if found is None else Progress(found.applied, found.applied + len(found.waiting))

    def look(self) -> frozenset[ObjectKey]:
        """Look who has applied what since the last look; return the objects of which that is otherwise."""
        moved: set[ObjectKey] = set()
        known: dict[tuple[NodeKey, int], bool | None] = {}
        for rollout in {id(each): each for each in self._of.values()}.values():
            before = len(rollout.waiting)
            for node, names in tuple(rollout.waiting.items()):
                of = (node, id(names))
                if of not in known:
                    known[of] = applied(self._here, node, names)
                if (found := known[of]) is not False:
                    del rollout.waiting[node]
                    rollout.applied += found is True
            if len(rollout.waiting) != before:
                moved |= rollout.keys
        return frozenset(moved)

    def _put(self, rollout: _Rollout) -> _Rollout:
        """Have a roll-out be the last one of its objects."""
        for key in rollout.keys:
            self.forget(key)
            self._of[key] = rollout
        return rollout


def _all(names: Names, more: Names) -> Names:
    if names is None or more is None:
        return None
    if not names:
        return more
    return {each: names.get(each, frozenset()) | more.get(each, frozenset()) for each in {**names, **more}}


def applied(here: ConnectedProxies, node: NodeKey, names: Names) -> bool | None:
    """Say whether a proxy has acknowledged what it is served now under these names; None if it is not here.

    One that has acknowledged others has asked for nothing of a type of which it has acknowledged nothing.
    """
    acknowledged, snapshot = here.acknowledged(node), here.served(node)
    if acknowledged is None or snapshot is None:
        return None
    if not acknowledged:
        return False
    for type_url in snapshot.types() if names is None else names:
        served, noted = snapshot.resources(type_url), acknowledged.get(type_url)
        if noted is None:
            continue
        for name in served if names is None else names[type_url]:
            resource = served.get(name)
            if resource is not None and not any(e.version == resource.version for e in noted.get(name)):
                return False
    return True


def concerned(
    before: Mapping[GroupKey, Snapshot],
    after: Mapping[GroupKey, Snapshot | None],
    here: Callable[[GroupKey], Iterable[NodeKey]],
) -> dict[NodeKey, Names]:
    """Return whom other snapshots concern, of those who are here in a group, and what changed for them."""
    found: dict[NodeKey, Names] = {}
    for group, old in before.items():
        new = after.get(group)
        if new is None or new is old or not (nodes := tuple(here(group))):
            continue
        names = new.changed_since(old)
        if any(names.values()):
            found.update(dict.fromkeys(nodes, names))
    return found
