"""Withholding: a proxy that rejects something is served the last good version of it, until that changes."""

import hashlib
import itertools
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeVar

from catalog.policy.left_out import Unit, UnitId, describe
from delivery.quarantine import blame
from delivery.quarantine.accepted import Accepted
from delivery.quarantine.backoff import pause
from delivery.quarantine.fallback import Empty, Fallback, Refusals, withheld
from delivery.quarantine.lessened import all_units, concerns, units_of
from delivery.quarantine.record import Moment, Record, Suspect, Told
from delivery.quarantine.verdicts import Verdict
from delivery.snapshots.published import Published, Step
from mesh.objects import ObjectKey
from sidecars.contract.reasons import Reason
from xds.cache import GroupKey, NodeKey
from xds.protocol.resource import SECRET, Reference, Resource, ResourceName, TypeUrl, Version
from xds.protocol.snapshot import Snapshot
from xds.protocol.type_state import blamed
from xds.protocol.wire import Rejection, Response

KNOWN: Final = 64
"""Withheld snapshots that are known again when the next proxy rejects the same."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Rejected:
    """Something that proxies reject: a resource in the version that it has, or a unit of policy in it.

    `proxy` is the first of them, `said` are its words, `reason` what they say, and `changed` the objects
    that had led to that version. `replaced`: all of them have a good version to go on with.
    """

    proxy: NodeKey
    type_url: TypeUrl
    name: ResourceName
    version: Version
    said: str
    replaced: bool
    unit: Unit | None = None
    reason: Reason = Reason.CONTENT
    changed: frozenset[ObjectKey] = frozenset()


@dataclass(frozen=True, slots=True)
class UnitOut:
    """A unit of policy that proxies are served without, sorted, and the words of the first; see `Told`."""

    unit: Unit
    proxies: tuple[NodeKey, ...]
    told: Told
    certain: bool


Judge = Callable[[TypeUrl, str], Reason]
"""Says why a resource of a type is rejected, by the proxy's words."""


def by_content(type_url: TypeUrl, said: str) -> Reason:
    """Take every rejection for one of content."""
    del type_url, said
    return Reason.CONTENT


class Quarantine:
    """Stands between what is computed and what is served: a proxy that rejected something is in a variant.

    A variant is a group of its own for those of a group that are to have the same. Everybody else is where
    the computation put them. What a proxy says moves that proxy alone, and what is kept of it is bounded by
    what it is served; it is forgotten with its workload.

    Where policy decides who is admitted, what a proxy rejects is taken out of the policy: units that are new
    since what it accepted last, or all of them, until the search has found which. They are content, and stay
    out over streams and restarts: `verdicts` are those of before the start, which is `now`. Resources that
    are rejected as such are offered again on each new stream. Both are offered again from time to time;
    `jitter` gives numbers from 0 to 1.
    """

    def __init__(
        self,
        empty: Empty,
        reason: Judge = by_content,
        verdicts: Iterable[Verdict] = (),
        now: float = 0.0,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._empty = empty
        self._reason = reason
        self._began = now
        self._jitter = jitter
        self._accepted = Accepted()
        self._groups: dict[GroupKey, Snapshot] = {}
        self._members: dict[NodeKey, GroupKey] = {}
        self._records: dict[NodeKey, Record] = {}
        self._variants: dict[GroupKey, Snapshot] = {}
        self._known: dict[object, Fallback] = {}
        self._units: dict[GroupKey, Mapping[UnitId, Unit]] = {}
        self._earlier: dict[NodeKey, list[Verdict]] = {}
        for each in verdicts:
            self._earlier.setdefault(each.proxy, []).append(each)

    def after(self, step: Step) -> Step:
        """Take a step of what is computed; return the step of what is served."""
        pairs: dict[tuple[int, GroupKey], tuple[Snapshot, GroupKey]] = {}
        for group in step.snapshots:
            if (before := self._groups.get(group)) is not None:
                pairs[id(before), group] = (before, group)
        for node, moved_to in step.members.items():
            if moved_to is not None and (before := self._own(node)) is not None:
                pairs[id(before), moved_to] = (before, moved_to)
        self._recall(step)
        concerned = [
            node
            for node in self._records
            if node in step.members or self._members.get(node) in step.snapshots
        ]
        self._known.clear()
        for group in step.snapshots:
            self._units.pop(group, None)
        _replace(self._groups, step.snapshots)
        _replace(self._members, step.members)
        for before, group in pairs.values():
            self._replaced(before, group)
        self._accepted.forget(_gone(step.members), _gone(step.snapshots))
        return self._redirected(step, concerned)

    def answered(
        self,
        node: NodeKey,
        response: Response,
        rejection: Rejection | None,
        moment: Moment,
        changed: frozenset[ObjectKey] = frozenset(),
    ) -> Step | None:
        """Take a proxy's answer; return how what is served changes by it, None if it says nothing new.

        `changed` are the objects that led to the response.
        """
        group = self._members.get(node)
        served = self._served(node)
        if group is None or served is None:  # its workload is not known: it keeps what it has
            return None
        if rejection is not None:
            if not self._reject(node, group, served, response, rejection, moment, changed):
                return None
            return self._redirected(Step(), [node])
        record = self._records.get(node)
        is_own = record is None or record.variant is None
        self._accepted.note(node, group if is_own else None, response, served)
        if record is None:
            return None
        there = served.versions(response.type_url)
        now = {(e.type_url, e.name) for e in response.resources if there.get(e.name) == e.version}
        confirmed = record.accepted(now)
        if not self._go_on(record, served, now, response.type_url):
            return Step() if confirmed else None
        record.moved = moment.seconds
        return self._redirected(Step(), [node])

    def opened(self, node: NodeKey) -> Step | None:
        """Take note of a new stream: resources that the proxy rejected are offered again on it."""
        record = self._records.get(node)
        return self._offered(node, [e for e in record.certain if not isinstance(e, str)] if record else ())

    def retry(self, node: NodeKey) -> Step | None:
        """Offer a proxy again all that it has rejected; return how what is served changes by it."""
        record = self._records.get(node)
        return self._offered(node, record.certain if record is not None else ())

    def due(self) -> float | None:
        """Return when `on_time` has something to do; None for as long as nothing is withheld."""
        moments = (each for record in self._records.values() if (each := record.due()) is not None)
        return min(moments, default=None)

    def on_time(self, now: float) -> Step | None:
        """Offer again what is due; return how what is served changes by it."""
        due = [
            node
            for node, record in self._records.items()
            if (at := record.due()) is not None and at <= now and record.on_time(now)
        ]
        return self._redirected(Step(), due) if due else None

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return which units of policy are at fault for certain, sorted; those of proxies to come as well.

        For certain: the proxy has accepted what there is without them.
        """
        found = [
            Verdict(node, each, *told.key, describe(unit), told.said, told.times, told.date)
            for node, record in self._records.items()
            for each, told in record.told.items()
            if isinstance(each, str)
            and told.times
            and told.confirmed
            and (unit := self._unit(node, each)) is not None
        ]
        return tuple(sorted((*found, *(each for kept in self._earlier.values() for each in kept))))

    def units_out(self) -> tuple[UnitOut, ...]:
        """Return the units of policy that proxies are served without, in the order of their ids."""
        found: dict[UnitId, list[tuple[NodeKey, Record]]] = {}
        for node in sorted(self._records):
            for each in self._records[node].units:
                found.setdefault(each, []).append((node, self._records[node]))
        return tuple(
            UnitOut(
                unit,
                tuple(node for node, _ in records),
                records[0][1].told[key],
                any(key in record.found for _, record in records),
            )
            for key, records in sorted(found.items())
            if (unit := self._unit(records[0][0], key)) is not None
        )

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
        """Return how many resources are withheld or made with less, by type: as often as from proxies."""
        return Counter(key[0] for record in self._records.values() for key in _withheld_resources(record))

    def rejected_by(self, node: NodeKey) -> tuple[Reference, ...]:
        """Return what a proxy has rejected for certain and not accepted since, sorted."""
        record = self._records.get(node)
        if record is None:
            return ()
        return tuple(sorted({record.told[each].key for each in record.found}))

    def rejected(self) -> tuple[Rejected, ...]:
        """Return what is rejected, sorted; what is only suspected is not among it.

        A resource is told for each group of those who are served the same, a unit of policy once for all.
        """
        found: dict[object, list[tuple[NodeKey, Record, Suspect, Version]]] = {}
        for node in sorted(self._records):
            record, own = self._records[node], self._own(node)
            for item in record.found if own is not None else ():
                key = record.told[item].key
                resource = own.resources(key[0]).get(key[1]) if own is not None else None
                if isinstance(item, str):
                    version = Version("") if resource is None else resource.version
                    found.setdefault(item, []).append((node, record, item, version))
                elif resource is not None:
                    place = (self._members[node], key, resource.version)
                    found.setdefault(place, []).append((node, record, item, resource.version))
        said = (self._told(records) for records in found.values())
        return tuple(sorted(said, key=lambda each: (each.proxy, each.type_url, each.name, repr(each.unit))))

    def rejections_of(self, node: NodeKey, key: Reference) -> tuple[Rejected, ...]:
        """Return what a proxy has rejected for certain in one resource."""
        record, own = self._records.get(node), self._own(node)
        if record is None or own is None:
            return ()
        resource = own.resources(key[0]).get(key[1])
        version = Version("") if resource is None else resource.version
        items = sorted((each for each in record.found if record.told[each].key == key), key=str)
        return tuple(self._told([(node, record, each, version)]) for each in items)

    def _told(self, records: list[tuple[NodeKey, Record, Suspect, Version]]) -> Rejected:
        node, record, item, version = records[0]
        told = record.told[item]
        unit = self._unit(node, item) if isinstance(item, str) else None
        replaced = all(told.key in record.good for _, record, _, _ in records)
        return Rejected(node, *told.key, version, told.said, replaced, unit, told.reason, told.changed)

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

    def _recall(self, step: Step) -> None:
        """Take up what was found guilty before a restart, of proxies that are known now."""
        for node in self._earlier.keys() & step.members.keys():
            if step.members[node] is None:
                continue
            record = self._records.setdefault(node, Record())
            for each in self._earlier.pop(node):
                told = Told(
                    (each.type_url, each.name),
                    frozenset(),
                    each.said,
                    Reason.CONTENT,
                    each.date,
                    times=each.times,
                    confirmed=True,
                    due=self._began + pause(each.times, self._jitter()),
                )
                record.recall(each.unit, told)

    def _offered(self, node: NodeKey, items: Iterable[Suspect]) -> Step | None:
        record = self._records.get(node)
        if record is None or not record.again(items):
            return None
        return self._redirected(Step(), [node])

    def _go_on(
        self, record: Record, served: Snapshot, accepted: Collection[Reference], type_url: TypeUrl
    ) -> bool:
        """Let in what is to be tried next, if what is tried is accepted; say whether the search goes on."""
        trials = record.trials.get(type_url)
        if trials is None:
            return False
        concerned = [each for each in served.ordered(type_url) if concerns(each, trials.trying)]
        if concerned and not any((type_url, each.name) in accepted for each in concerned):
            return False
        return record.tried(type_url) or bool(trials.trying)

    def _reject(
        self,
        node: NodeKey,
        group: GroupKey,
        served: Snapshot,
        response: Response,
        rejection: Rejection,
        moment: Moment,
        changed: frozenset[ObjectKey],
    ) -> bool:
        """Note a rejection; say whether it is about anything that the proxy is still served so."""
        named, cost = blamed(response, rejection)
        in_force = served.resources(response.type_url)
        here = [each for name in named if (each := in_force.get(name)) and each.version == named[name]]
        is_guess = cost >= named.keys() and response.type_url != SECRET
        own, record = self._own(node), self._records.get(node)
        trials = None if record is None else record.trials.get(response.type_url)
        if is_guess:
            tried = () if trials is None else trials.trying
            here = blame.likeliest(here, own, lambda each: self._accepted.accepts(node, each), tried)
        if not here:
            return False
        reason = self._reason(response.type_url, rejection.message)
        for resource in here:
            self._accepted.rejected(node, resource)
        record = self._records.setdefault(node, Record())
        told: list[dict[Suspect, Told]] = []
        for resource in here:
            place = (resource.type_url, resource.name)
            words = rejection.message
            said = Told(place, blame.versions(resource, own), words, reason, moment.date, changed)
            goods = self._goods(node, group, resource)
            told.append(dict.fromkeys(blame.suspected(resource, reason, record.told.get, goods), said))
        for together in [dict(itertools.chain(*(each.items() for each in told)))] if is_guess else told:
            record.refuse(together, moment, self._jitter())
        return True

    def _goods(self, node: NodeKey, group: GroupKey, resource: Resource) -> Iterator[Resource | None]:
        """Yield what a rejected version is compared with: what counts as good, what the proxy accepted."""
        key, bad = (resource.type_url, resource.name), blame.versions(resource, self._own(node))
        yield next((e for e in self._accepted.good(node, group, key) if e.version not in bad), None)
        yield self._accepted.by(node, key)

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
            elif found.snapshot is not self._own(node):
                name = _variant_name(self._members[node], found.snapshot)
                members[node], record.variant = name, name
                snapshots[name] = self._variants.setdefault(name, found.snapshot)
        for name in left - {record.variant for record in self._records.values()}:
            del self._variants[name]
            snapshots[name] = None
        return replace(step, snapshots=snapshots, members=members)

    def _found(self, node: NodeKey, record: Record) -> Fallback | None:
        """Bring a record up to date with what is computed; return what to serve, None if nothing is left."""
        own = self._own(node)
        if own is None:
            return None
        group = self._members[node]
        record.lapse(own, self._units_of(group, own))
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
        return found if record.is_about(own) else None

    def _units_of(self, group: GroupKey, own: Snapshot) -> Mapping[UnitId, Unit]:
        found = self._units.get(group)
        if found is None:
            found = self._units[group] = all_units(own)
        return found

    def _unit(self, node: NodeKey, key: UnitId) -> Unit | None:
        own = self._own(node)
        return None if own is None else self._units_of(self._members[node], own).get(key)

    def _withheld(self, group: GroupKey, own: Snapshot, record: Record) -> Fallback:
        """Return what is served to all of a group who reject the same and have the same instead."""
        versions = frozenset((key, each.version) for key, each in record.good.items())
        asked = (group, frozenset(record.rejected.items()), versions, record.units)
        found = self._known.get(asked)
        if found is None:
            if len(self._known) >= KNOWN:
                self._known.clear()
            found = self._known[asked] = withheld(own, record.refusal(), self._empty)
        return found

    def _good(self, node: NodeKey, group: GroupKey, record: Record, key: Reference) -> Resource | None:
        """Return what is good of a resource: what is served instead already, else what was accepted."""
        rejected, out = record.rejected.get(key, frozenset()), record.units
        kept = record.good.get(key)
        candidates = (*(() if kept is None else (kept,)), *self._accepted.good(node, group, key))
        return next(
            (e for e in candidates if e.version not in rejected and out.isdisjoint(units_of(e))), None
        )


def _replace(known: dict[K, V], changes: Mapping[K, V | None]) -> None:
    for key, value in changes.items():
        if value is None:
            known.pop(key, None)
        else:
            known[key] = value


def _gone(changes: Mapping[K, object | None]) -> list[K]:
    return [key for key, value in changes.items() if value is None]


def _withheld_resources(record: Record) -> frozenset[Reference]:
    return frozenset(record.told[each].key for trials in record.trials.values() for each in trials.out)


def _variant_name(group: GroupKey, snapshot: Snapshot) -> GroupKey:
    """Return the name of a group of those who are to have the same, other than their group."""
    content = "\0".join(f"{each}\0{snapshot.version(each)}" for each in snapshot.types())
    return GroupKey(f"{group}|withheld|{hashlib.sha256(content.encode()).hexdigest()[:16]}")
