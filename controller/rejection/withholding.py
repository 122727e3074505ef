"""Withholding: a proxy that rejects something is served the last good version of it, until that changes."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeVar

from controller.rejection.accepted import Accepted
from controller.rejection.rejecting import Rejecting
from controller.rejection.withheld import Empty, Refusals, Withheld, withheld
from controller.snapshots.published import Published, Step
from xds.cache import GroupKey, NodeKey
from xds.channel import blamed
from xds.resource import SECRET, Reference, Resource, ResourceName, TypeUrl, Version
from xds.snapshot import Snapshot
from xds.wire import Rejection, Response

KNOWN: Final = 64
"""Withheld snapshots that are known again when the next proxy rejects the same."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Rejected:
    """A resource that proxies of a group reject in the version that it has.

    `proxy` is the first of them, and `said` are its words. `replaced`: all of them have a good version to go
    on with.
    """

    proxy: NodeKey
    type_url: TypeUrl
    name: ResourceName
    version: Version
    said: str
    replaced: bool


class Withholding:
    """Stands between what is computed and what is served: a proxy that rejected something is in a variant.

    A variant is a group of its own for those of a group that are to have the same. Everybody else is where
    the computation put them. What a proxy says moves that proxy alone, and what is kept of it is bounded by
    what it is served; it is forgotten with its workload.
    """

    def __init__(self, empty: Empty) -> None:
        self._empty = empty
        self._accepted = Accepted()
        self._groups: dict[GroupKey, Snapshot] = {}
        self._members: dict[NodeKey, GroupKey] = {}
        self._records: dict[NodeKey, Rejecting] = {}
        self._variants: dict[GroupKey, Snapshot] = {}
        self._known: dict[object, Withheld] = {}

    def after(self, step: Step) -> Step:
        """Take a step of what is computed; return the step of what is served."""
        pairs: dict[tuple[int, GroupKey], tuple[Snapshot, GroupKey]] = {}
        for group in step.snapshots:
            if (before := self._groups.get(group)) is not None:
                pairs[id(before), group] = (before, group)
        for node, moved_to in step.members.items():
            if moved_to is not None and (before := self._own(node)) is not None:
                pairs[id(before), moved_to] = (before, moved_to)
        concerned = [
            node
            for node in self._records
            if node in step.members or self._members.get(node) in step.snapshots
        ]
        self._known.clear()
        _replace(self._groups, step.snapshots)
        _replace(self._members, step.members)
        for before, group in pairs.values():
            self._replaced(before, group)
        self._accepted.forget(_gone(step.members), _gone(step.snapshots))
        return self._redirected(step, concerned)

    def answered(self, node: NodeKey, response: Response, rejection: Rejection | None) -> Step | None:
        """Take a proxy's answer; return how what is served changes by it, None if it says nothing new."""
        group = self._members.get(node)
        served = self._served(node)
        if group is None or served is None:  # its workload is not known: it keeps what it has
            return None
        if rejection is None:
            self._accepted.note(node, group, response, served)
            record = self._records.get(node)
            if record is None or not record.release(response.type_url):
                return None
        elif not self._reject(node, served, response, rejection):
            return None
        return self._redirected(Step(), [node])

    def served(self, published: Published) -> Published:
        """Return what is served, of what was computed."""
        moved = {node: record.variant for node, record in self._records.items() if record.variant is not None}
        return replace(
            published,
            snapshots=MappingProxyType({**published.snapshots, **self._variants}),
            members=MappingProxyType({**published.members, **moved}),
        )

    def refusals(self) -> Refusals:
        """Return what is withheld from whom, for whoever computes it again."""
        return Refusals({node: record.refusal() for node, record in self._records.items()}, self._empty)

    def counts(self) -> Mapping[TypeUrl, int]:
        """Return how many resources are withheld by type, each as often as from a proxy."""
        return Counter(key[0] for record in self._records.values() for key in record.rejected)

    def rejected_by(self, node: NodeKey) -> tuple[Reference, ...]:
        """Return what a proxy has rejected and is withheld from it, sorted; not what is to be tried again."""
        record = self._records.get(node)
        return () if record is None else tuple(sorted(record.certain))

    def rejected(self) -> tuple[Rejected, ...]:
        """Return what is rejected, sorted; what may be good and is to be tried again is not among it."""
        found: dict[tuple[GroupKey, Reference, Version], list[tuple[NodeKey, Rejecting]]] = {}
        for node, record in self._records.items():
            own = self._own(node)
            for key in record.certain:
                if own is not None and (resource := own.resources(key[0]).get(key[1])) is not None:
                    place = (self._members[node], key, resource.version)
                    found.setdefault(place, []).append((node, record))
        return tuple(
            Rejected(
                min(node for node, _ in records),
                *key,
                version,
                min(records, key=lambda each: each[0])[1].said[key],
                all(key in record.good for _, record in records),
            )
            for (_, key, version), records in sorted(found.items(), key=lambda each: each[0])
        )

    def size(self) -> int:
        """Return how many resources are remembered."""
        return self._accepted.size() + sum(len(record.good) for record in self._records.values())

    def _own(self, node: NodeKey) -> Snapshot | None:
        """Return what was computed for a proxy."""
        group = self._members.get(node)
        return None if group is None else self._groups.get(group)

    def _served(self, node: NodeKey) -> Snapshot | None:
        record = self._records.get(node)
        if record is None or record.variant is None:
            return self._own(node)
        return self._variants[record.variant]

    def _replaced(self, before: Snapshot, group: GroupKey) -> None:
        """Remember the versions before the newest, for those who reject it and have acknowledged none."""
        after = self._groups.get(group)
        if after is None:
            return
        for type_url, names in after.changed_since(before).items():
            old = before.resources(type_url)
            for name in names & old.keys():
                self._accepted.replaced(group, old[name])

    def _reject(self, node: NodeKey, served: Snapshot, response: Response, rejection: Rejection) -> bool:
        """Note a rejection; say whether it is about anything that the proxy is still served so."""
        named, cost = blamed(response, rejection)
        in_force = served.resources(response.type_url)
        here = [each for name in named if (each := in_force.get(name)) and each.version == named[name]]
        is_guess = cost >= named.keys() and response.type_url != SECRET
        blameable = self._likeliest(node, here) if is_guess else here
        if not blameable:
            return False
        record = self._records.setdefault(node, Rejecting())
        record.refuse(blameable, rejection.message, is_guess=is_guess)
        for resource in blameable:
            self._accepted.rejected(node, resource)
        return True

    def _likeliest(self, node: NodeKey, resources: list[Resource]) -> list[Resource]:
        """Return which of these a proxy may have meant that did not say which it was, all if it may be any.

        What it had accepted before is not it, and what is served in the place of another is hardly it.
        """
        own = self._own(node)
        fresh = [each for each in resources if not self._accepted.accepts(node, each)]
        named = () if own is None else [e for e in fresh if own.resources(e.type_url).get(e.name) == e]
        return [*named] or fresh or resources

    def _redirected(self, step: Step, nodes: Iterable[NodeKey]) -> Step:
        """Return a step with these proxies, which rejected something, served what they are to have."""
        snapshots, members = dict(step.snapshots), dict(step.members)
        left: set[GroupKey] = set()
        for node in nodes:
            record = self._records[node]
            if record.variant is not None:
                left.add(record.variant)
                members.setdefault(node, self._members.get(node))
                record.variant = None
            if (found := self._found(node, record)) is None:
                del self._records[node]
            elif found.instead:
                name = _variant_name(self._members[node], found.snapshot)
                members[node], record.variant = name, name
                snapshots[name] = self._variants.setdefault(name, found.snapshot)
        for name in left - {record.variant for record in self._records.values()}:
            del self._variants[name]
            snapshots[name] = None
        return replace(step, snapshots=snapshots, members=members)

    def _found(self, node: NodeKey, record: Rejecting) -> Withheld | None:
        """Bring a record up to date with what is computed; return what to serve, None if nothing is left."""
        own = self._own(node)
        if own is None or not record.lapse(own):
            return None
        group = self._members[node]
        while True:
            found = self._withheld(group, own, record)
            more = {
                key: good
                for key in sorted(found.asked)
                if (good := self._good(node, group, record, key)) is not None and record.good.get(key) != good
            }
            if not more:
                break
            record.good.update(more)
        record.trim(own, found.asked)
        return found

    def _withheld(self, group: GroupKey, own: Snapshot, record: Rejecting) -> Withheld:
        """Return what is served to all of a group who reject the same and have the same instead."""
        versions = frozenset((key, each.version) for key, each in record.good.items())
        asked = (group, frozenset(record.rejected.items()), versions)
        found = self._known.get(asked)
        if found is None:
            if len(self._known) >= KNOWN:
                self._known.clear()
            found = self._known[asked] = withheld(own, record.refusal(), self._empty)
        return found

    def _good(self, node: NodeKey, group: GroupKey, record: Rejecting, key: Reference) -> Resource | None:
        """Return what is good of a resource: what is served instead already, else what was accepted."""
        rejected = record.rejected.get(key, frozenset())
        kept = record.good.get(key)
        candidates = (*(() if kept is None else (kept,)), *self._accepted.good(node, group, key))
        return next((each for each in candidates if each.version not in rejected), None)


def _replace(known: dict[K, V], changes: Mapping[K, V | None]) -> None:
    for key, value in changes.items():
        if value is None:
            known.pop(key, None)
        else:
            known[key] = value


def _gone(changes: Mapping[K, object | None]) -> list[K]:
    return [key for key, value in changes.items() if value is None]


def _variant_name(group: GroupKey, snapshot: Snapshot) -> GroupKey:
    """Return the name of a group of those who are to have the same, other than their group."""
    content = "\0".join(f"{each}\0{snapshot.version(each)}" for each in snapshot.types())
    return GroupKey(f"{group}|withheld|{hashlib.sha256(content.encode()).hexdigest()[:16]}")
