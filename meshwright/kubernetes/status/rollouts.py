"""Rollouts: the progress of the last change of each object at the proxies.

A rollout counts the proxies that are connected when the change is published and whose configuration changes.
A proxy has applied the change after an ACK of the changed resources to which the proxy subscribes, or of
newer versions. A disconnected proxy is not counted any more, because the proxy gets the newest configuration
after its next connection.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from meshwright.delivery.quarantine.acknowledged_resources import Acknowledged
from meshwright.mesh.objects import ObjectKey
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import SECRET, ResourceName, TypeUrl
from xds.protocol.resources.snapshot import Snapshot

Names = Mapping[TypeUrl, frozenset[ResourceName]] | None
"""Names of the changed resources of a proxy, by type; None if any resource may have changed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Number of proxies that applied an object's change, and number of all proxies that must apply it.

    `where` describes the servers of these proxies, empty for one server. `unknown` are servers whose proxies
    are not known.
    """

    applied: int
    total: int
    where: str = ""
    unknown: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        """Return whether all proxies applied the object's change."""
        return self.applied == self.total and not self.unknown


class ConnectedProxies(Protocol):
    """State of the connected proxies, for the progress of rollouts."""

    def acknowledged(self, node: NodeKey) -> Acknowledged | None:
        """Return the xDS resources that the proxy acknowledged; None if it is not connected."""

    def served(self, node: NodeKey) -> Snapshot | None:
        """Return the xDS snapshot that is served to the proxy."""


@dataclass(slots=True)
class _Rollout:
    """One change of one object, or of several objects that changed together and share the rollout."""

    keys: set[ObjectKey]
    waiting: dict[NodeKey, Names]
    applied: int = 0


class Rollouts:
    """The last rollout of each changed object to the proxies. `look` costs time for each pending proxy."""

    def __init__(self, here: ConnectedProxies) -> None:
        self._here = here
        self._of: dict[ObjectKey, _Rollout] = {}

    @property
    def is_pending(self) -> bool:
        """Return whether any proxy has not yet applied a change."""
        return any(rollout.waiting for rollout in self._of.values())

    def begin(self, keys: Iterable[ObjectKey], concerned: Mapping[NodeKey, Names]) -> None:
        """Start a new rollout of the changed objects at these proxies, in place of earlier rollouts."""
        self._put(_Rollout(set(keys), dict(concerned)))

    def extend(self, keys: Iterable[ObjectKey], concerned: Mapping[NodeKey, Names]) -> None:
        """Add proxies to rollouts whose wave is published in parts. Each proxy is in one part."""
        for rollout, those in self._together(keys):
            own = rollout
            if those != rollout.keys:  # objects outside `keys` keep the old rollout
                own = self._put(replace(rollout, keys=those, waiting=dict(rollout.waiting)))
            own.waiting.update(concerned)

    def renew(self, keys: Iterable[ObjectKey], concerned: Mapping[NodeKey, Names]) -> None:
        """Record another change of the objects, whether or not the last one is complete.

        Pending proxies stay pending. A proxy of this change is counted again, even after the last change was
        applied.
        """
        for rollout, those in self._together(keys):
            both = {node: _all(rollout.waiting.get(node, {}), names) for node, names in concerned.items()}
            self._put(_Rollout(those, {**rollout.waiting, **both}))

    def _together(self, keys: Iterable[ObjectKey]) -> Iterable[tuple[_Rollout, set[ObjectKey]]]:
        """Group the objects by their rollout. Objects without a rollout share a new one."""
        new = _Rollout(set(), {})
        result: dict[int, tuple[_Rollout, set[ObjectKey]]] = {}
        for key in keys:
            rollout = self._of.get(key, new)
            result.setdefault(id(rollout), (rollout, set()))[1].add(key)
        return result.values()

    def forget(self, key: ObjectKey) -> None:
        """Forget the rollout of a deleted object."""
        if (rollout := self._of.pop(key, None)) is not None:
            rollout.keys.discard(key)

    def progress(self, key: ObjectKey) -> Progress | None:
        """Return the progress of the last change of an object; None if the object has not changed."""
        rollout = self._of.get(key)
        return None if rollout is None else Progress(rollout.applied, rollout.applied + len(rollout.waiting))

    def all_progress(self) -> dict[ObjectKey, Progress]:
        """Return the progress of the last change of each object."""
        return {
            key: Progress(rollout.applied, rollout.applied + len(rollout.waiting))
            for key, rollout in self._of.items()
        }

    def look(self) -> frozenset[ObjectKey]:
        """Update the progress of all rollouts. Return the objects with changed progress."""
        moved: set[ObjectKey] = set()
        known: dict[tuple[NodeKey, int], bool | None] = {}
        for rollout in {id(item): item for item in self._of.values()}.values():
            before = len(rollout.waiting)
            for node, names in tuple(rollout.waiting.items()):
                # Objects of one wave share `names`, so the answer for a proxy is computed once.
                of = (node, id(names))
                if of not in known:
                    known[of] = applied(self._here, node, names)
                if (result := known[of]) is not False:
                    del rollout.waiting[node]
                    rollout.applied += result is True
            if len(rollout.waiting) != before:
                moved |= rollout.keys
        return frozenset(moved)

    def _put(self, rollout: _Rollout) -> _Rollout:
        """Make this rollout the last one of its objects, and return it."""
        for key in rollout.keys:
            self.forget(key)
            self._of[key] = rollout
        return rollout


def _all(names: Names, more: Names) -> Names:
    if names is None or more is None:
        return None
    if not names:
        return more
    return {
        type_url: names.get(type_url, frozenset()) | more.get(type_url, frozenset())
        for type_url in {**names, **more}
    }


def applied(here: ConnectedProxies, node: NodeKey, names: Names) -> bool | None:
    """Return whether the proxy acknowledged the served versions of `names`; None if not connected.

    A proxy subscribes to types. If a proxy acknowledged other types and nothing of one type, the proxy is not
    subscribed to this type. The same is true of secrets by name, because a proxy subscribes only to secrets
    that its listeners or clusters use: for example, a gateway whose backends have no sidecars uses the
    certificates of its listeners, and not that of its own service.
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
            resource, entries = served.get(name), noted.get(name)
            if resource is None or (type_url == SECRET and not entries):
                continue
            if not any(entry.version == resource.version for entry in entries):
                return False
    return True


def concerned(
    before: Mapping[GroupKey, Snapshot],
    after: Mapping[GroupKey, Snapshot | None],
    here: Callable[[GroupKey], Iterable[NodeKey]],
) -> dict[NodeKey, Names]:
    """Return the connected proxies with a changed snapshot, each with the names of its changed resources."""
    result: dict[NodeKey, Names] = {}
    for group, old in before.items():
        new = after.get(group)
        if new is None or new is old or not (nodes := tuple(here(group))):
            continue
        names = new.changed_since(old)
        if any(names.values()):
            result.update(dict.fromkeys(nodes, names))
    return result
