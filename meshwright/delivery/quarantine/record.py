"""A proxy that rejects something: what was said of what, what stands in its place, what is tried again.

What was refused is offered again soon at first, then less and less often.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from catalog.policy.units import UnitId
from meshwright.delivery.quarantine.fallback import Exclusion
from meshwright.delivery.trials import Trials
from meshwright.mesh.objects import ObjectKey
from meshwright.sidecars.contract.reasons import Reason
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import Reference, Resource, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot

STALLED_SECONDS: Final = 10.0
"""After this long without an answer a search goes on: the proxy may have no use for what is tried."""
FIRST_PAUSE_SECONDS: Final = 10.0
LONGEST_PAUSE_SECONDS: Final = 600.0
SPREAD: Final = 0.2
"""By how much of it a pause may be shorter, so that proxies that refused together do not come back so."""

Suspect = Reference | UnitId
"""What may be at fault: a unit of policy, or a resource that is not, or not only, made of such."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment: in seconds of a clock that only goes forward, and as a date."""

    seconds: float
    date: datetime


@dataclass(frozen=True, slots=True)
class Accusation:
    """What was said of a suspect: in which versions of which resource it was refused, why, and when.

    `changed` are the objects that had led to the last of them. It was found guilty `times` in a row, 0 while
    it is only suspected, and is offered again at `due`. It is `confirmed` once the proxy has accepted the
    resource without it.
    """

    key: Reference
    versions: frozenset[Version]
    said: str
    reason: Reason
    date: datetime
    changed: frozenset[ObjectKey] = frozenset()
    times: int = 0
    due: float = 0.0
    confirmed: bool = False


@dataclass(slots=True)
class Record:
    """What is known of one proxy that rejects something: what was said of each suspect, and the search.

    The search goes on by type, for an answer is about one; `moved` is when it last did. `good` are resources
    to be had instead. `variant` is the group of those who are served the same.
    """

    accused: dict[Suspect, Accusation] = field(default_factory=dict)
    trials: dict[TypeUrl, Trials[Suspect]] = field(default_factory=dict)
    good: dict[Reference, Resource] = field(default_factory=dict)
    moved: float = 0.0
    variant: GroupKey | None = None

    @property
    def certain(self) -> frozenset[Suspect]:
        """What is at fault for certain."""
        return frozenset(each for trials in self.trials.values() for each in trials.guilty)

    @property
    def found(self) -> frozenset[Suspect]:
        """What was found at fault and has not been accepted since: what is being tried once more as well."""
        return frozenset(each for each, one in self.accused.items() if one.times)

    @property
    def units(self) -> frozenset[UnitId]:
        """The units of policy that are left out, for certain or until they are tried."""
        return frozenset(each for each in self._out() if isinstance(each, str))

    @property
    def rejected(self) -> Mapping[Reference, frozenset[Version]]:
        """The versions of resources that are withheld."""
        return {each: self.accused[each].versions for each in self._out() if not isinstance(each, str)}

    @property
    def withheld(self) -> frozenset[Reference]:
        """The resources that are withheld, or made with less."""
        return frozenset(self.accused[each].key for each in self._out())

    def exclusion(self) -> Exclusion:
        """Return it as it is now, for a computation."""
        good = MappingProxyType(dict(self.good))
        return Exclusion(MappingProxyType(dict(self.rejected)), good, self.units)

    def refuse(self, suspects: Mapping[Suspect, Accusation], moment: Moment, jitter: float) -> None:
        """Take a rejection that is about one or more of these, which stand in one type."""
        type_url = next(iter(suspects.values())).key[0]
        for other in self.trials.keys() - {type_url}:
            self.trials[other] = self.trials[other].less(suspects)
        trials = self.trials.get(type_url, Trials()).refused(tuple(suspects))
        for item, one in suspects.items():
            before = self.accused.get(item)
            times = (0 if before is None else before.times) + (item in trials.guilty)
            versions = one.versions if before is None else one.versions | before.versions
            due = moment.seconds + pause(max(times, 1), jitter)
            confirmed = before is not None and before.confirmed
            self.accused[item] = replace(one, versions=versions, times=times, due=due, confirmed=confirmed)
        for key in (each for each in suspects if not isinstance(each, str)):
            trials = self._acquitted(trials, key)
        self.trials[type_url] = trials
        self.moved = moment.seconds

    def accepted(self, keys: Collection[Reference]) -> bool:
        """Take it that resources are accepted without what is out of them; say whether that is news."""
        out = frozenset(self._out())
        news = {
            each: replace(one, confirmed=True)
            for each, one in self.accused.items()
            if each in out and one.key in keys and not one.confirmed
        }
        self.accused.update(news)
        return bool(news)

    def recall(self, unit: UnitId, accusation: Accusation) -> None:
        """Take up what was found guilty at another time."""
        self.accused[unit] = accusation
        trials = self.trials.get(accusation.key[0], Trials())
        self.trials[accusation.key[0]] = replace(trials, guilty=trials.guilty | {unit})

    def tried(self, type_url: TypeUrl) -> bool:
        """Take it that what is tried is accepted, and let in what is next; say whether anything was."""
        if (trials := self.trials.get(type_url)) is None:
            return False
        for each in trials.trying:
            del self.accused[each]
        self.trials[type_url] = after = trials.next()
        self._tidy()
        return bool(after.trying)

    def again(self, items: Iterable[Suspect]) -> bool:
        """Offer again, one by one, what was found guilty; say whether any of it is let in now."""
        wanted, moves = frozenset(items), False
        for type_url, trials in [*self.trials.items()]:
            if found := sorted(trials.guilty & wanted, key=str):
                self.trials[type_url] = trials.again(found)
                if not trials.trying:
                    moves = self.tried(type_url) or moves
        return moves

    def due(self) -> float | None:
        """Return when something is to be offered again; None where nothing is withheld."""
        moments = [self.accused[each].due for each in self.certain]
        if any(trials.waiting for trials in self.trials.values()):
            moments.append(self.moved + STALLED_SECONDS)
        return min(moments, default=None)

    def on_time(self, now: float) -> bool:
        """Offer again what is due; say whether any of it is let in."""
        moves = False
        if now >= self.moved + STALLED_SECONDS:
            for type_url in [kind for kind, trials in self.trials.items() if trials.waiting]:
                self.moved = now
                moves = self.tried(type_url) or moves
        return self.again(each for each in self.certain if self.accused[each].due <= now) or moves

    def lapse(self, own: Snapshot, units: Collection[UnitId]) -> None:
        """Drop what is another now than was refused, by what is computed.

        What the group no longer has, and was rejected when it came back for another's sake, waits for those.
        """
        gone: set[Suspect] = set()
        for item, one in self.accused.items():
            if isinstance(item, str):
                if item not in units:
                    gone.add(item)
            elif (now := own.resources(item[0]).get(item[1])) is not None and now.version not in one.versions:
                gone.add(item)
        self._drop(gone)

    def is_about(self, own: Snapshot) -> bool:
        """Say whether anything of it concerns what is computed."""
        return any(isinstance(item, str) or item[1] in own.resources(item[0]) for item in self.accused)

    def trim(self, own: Snapshot, asked: Collection[Reference]) -> None:
        """Drop what no computation asks for."""
        self._drop({key for key in self.rejected if key not in asked and key[1] not in own.resources(key[0])})

    def _out(self) -> Iterator[Suspect]:
        return (each for trials in self.trials.values() for each in trials.out)

    def _acquitted(self, trials: Trials[Suspect], key: Reference) -> Trials[Suspect]:
        """A resource that is refused without its suspects as well is at fault itself: not they."""
        cleared = {
            each
            for each in trials.out
            if isinstance(each, str) and self.accused[each].key == key and not self.accused[each].confirmed
        }
        for each in cleared:
            del self.accused[each]
        return trials.less(cleared)

    def _drop(self, gone: Collection[Suspect]) -> None:
        if not gone:
            return
        for type_url, trials in self.trials.items():
            self.trials[type_url] = trials.less(gone)
        for each in gone:
            del self.accused[each]
        self._tidy()

    def _tidy(self) -> None:
        self.trials = {kind: each for kind, each in self.trials.items() if each != Trials()}


@dataclass(slots=True)
class StreamRecord:
    """The record of one stream of a proxy; `latest` is the last snapshot asked about, and its answer."""

    node: NodeKey
    record: Record = field(default_factory=Record)
    latest: tuple[Snapshot, Snapshot] | None = None


def pause(times: int, jitter: float) -> float:
    """Return for how many seconds what was refused so many times in a row (from 1) is not offered.

    `jitter` is a number from 0 to 1: of two equal pauses that with the greater one is shorter.
    """
    doubled: float = FIRST_PAUSE_SECONDS * 2.0 ** min(times - 1, 10)
    return min(doubled, LONGEST_PAUSE_SECONDS) * (1 - SPREAD * jitter)
