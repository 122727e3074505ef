"""Record of a proxy with rejections: accusations, good versions, and the state of the search.

A rejected suspect is offered again after a pause of 10 seconds, which doubles with each rejection in a row up
to 10 minutes.
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
"""Seconds without an answer after which a search goes on.

A proxy without a use for the resource on trial never answers.
"""
FIRST_PAUSE_SECONDS: Final = 10.0
LONGEST_PAUSE_SECONDS: Final = 600.0
SLOWEST_FROM: Final = 7
"""Number of rejections in a row from which on the pause is the longest one."""
SPREAD: Final = 0.2
"""Largest part by which a pause is shortened at random.

Proxies that rejected a resource together thus do not retry together.
"""

Suspect = Reference | UnitId
"""Possible cause of a rejection: a unit of policy, or a whole resource with causes besides its units."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment, in seconds of a monotonic clock and as a date."""

    seconds: float
    date: datetime


@dataclass(frozen=True, slots=True)
class Accusation:
    """Rejections of one suspect: resource, rejected versions, error message, reason and date.

    `changed` are the objects behind the last rejection. `times` counts proofs of guilt in a row, and is 0 for
    a mere suspect. At `due` (monotonic seconds) the suspect is offered again. `confirmed` is True after the
    proxy has accepted the resource without the suspect.
    """

    key: Reference
    versions: frozenset[Version]
    message: str
    reason: Reason
    date: datetime
    changed: frozenset[ObjectKey] = frozenset()
    times: int = 0
    due: float = 0.0
    confirmed: bool = False


@dataclass(slots=True)
class Record:
    """State of one proxy with rejections: the accusation of each suspect, and the search for guilty suspects.

    The search is separate for each type URL, because a response has one type; `moved` is the time of its last
    step in seconds. `good` are the resources served instead of rejected ones. `variant` is the group of all
    proxies with the same reduced snapshot, or `None`.
    """

    accused: dict[Suspect, Accusation] = field(default_factory=dict)
    trials: dict[TypeUrl, Trials[Suspect]] = field(default_factory=dict)
    good: dict[Reference, Resource] = field(default_factory=dict)
    moved: float = 0.0
    variant: GroupKey | None = None

    @property
    def certain(self) -> frozenset[Suspect]:
        """Suspects (units of policy or resources) proved guilty of a rejection, and excluded now."""
        return frozenset(item for trials in self.trials.values() for item in trials.guilty)

    @property
    def proved(self) -> frozenset[Suspect]:
        """Suspects proved guilty and not accepted since, also while they are offered again."""
        return frozenset(item for item, one in self.accused.items() if one.times)

    @property
    def units(self) -> frozenset[UnitId]:
        """Excluded units of policy, proved guilty or still waiting for a trial."""
        return frozenset(item for item in self._out() if isinstance(item, str))

    @property
    def rejected(self) -> Mapping[Reference, frozenset[Version]]:
        """Rejected versions by withheld resource."""
        return {item: self.accused[item].versions for item in self._out() if not isinstance(item, str)}

    @property
    def withheld(self) -> frozenset[Reference]:
        """References of resources withheld from the proxy, or made without some units of policy."""
        return frozenset(self.accused[item].key for item in self._out())

    def exclusion(self) -> Exclusion:
        """Return a copy of the excluded units and versions, for the computation of a fallback."""
        good = MappingProxyType(dict(self.good))
        return Exclusion(MappingProxyType(dict(self.rejected)), good, self.units)

    def refuse(self, suspects: Mapping[Suspect, Accusation], moment: Moment, jitter: float) -> None:
        """Record a rejection caused by one or more of these suspects, all in resources of one type."""
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
        for key in (suspect for suspect in suspects if not isinstance(suspect, str)):
            trials = self._acquitted(trials, key)
        self.trials[type_url] = trials
        self.moved = moment.seconds

    def accepted(self, keys: Collection[Reference]) -> bool:
        """Record that the proxy accepted these resources without the suspects; return True for a new fact."""
        out = frozenset(self._out())
        news = {
            item: replace(one, confirmed=True)
            for item, one in self.accused.items()
            if item in out and one.key in keys and not one.confirmed
        }
        self.accused.update(news)
        return bool(news)

    def recall(self, unit: UnitId, accusation: Accusation) -> None:
        """Restore the verdict on a unit of policy proved guilty earlier, or on another server.

        A search with this unit goes on without the unit.
        """
        self.accused[unit] = accusation
        self.trials = {kind: trials.less({unit}) for kind, trials in self.trials.items()}
        trials = self.trials.get(accusation.key[0], Trials())
        self.trials[accusation.key[0]] = replace(trials, guilty=trials.guilty | {unit})

    def exclude_proved(self) -> bool:
        """Exclude all proved units of policy; return whether any of them was offered again just now."""
        offered = [item for item in self.proved - self.certain if isinstance(item, str)]
        for item in offered:
            self.recall(item, self.accused[item])
        return bool(offered)

    def confirm(self, units: Iterable[UnitId]) -> None:
        """Confirm the verdicts on these units, because another server has found the same."""
        for item in [unit for unit in units if unit in self.proved]:
            self.accused[item] = replace(self.accused[item], confirmed=True)

    def end(self, units: Iterable[UnitId]) -> None:
        """Drop the verdicts on these units of policy; units that are only suspected stay."""
        self._drop([unit for unit in units if unit in self.proved])

    def tried(self, type_url: TypeUrl) -> bool:
        """Acquit the suspects on trial, and offer the next ones; return whether there are any."""
        if (trials := self.trials.get(type_url)) is None:
            return False
        for item in trials.trying:
            del self.accused[item]
        self.trials[type_url] = after = trials.next()
        self._tidy()
        return bool(after.trying)

    def again(self, items: Iterable[Suspect]) -> bool:
        """Offer guilty suspects to the proxy again, one by one; return whether any is offered now."""
        wanted, moves = frozenset(items), False
        for type_url, trials in [*self.trials.items()]:
            if result := sorted(trials.guilty & wanted, key=str):
                self.trials[type_url] = trials.again(result)
                if not trials.trying:
                    moves = self.tried(type_url) or moves
        return moves

    def due(self) -> float | None:
        """Return the time of the next retry in monotonic seconds, or `None` while nothing is withheld."""
        moments = [self.accused[item].due for item in self.certain]
        if any(trials.waiting for trials in self.trials.values()):
            moments.append(self.moved + STALLED_SECONDS)
        return min(moments, default=None)

    def on_time(self, now: float) -> bool:
        """Offer suspects with a due retry, continue a stalled search; return whether any is offered now."""
        moves = False
        if now >= self.moved + STALLED_SECONDS:
            for type_url in [kind for kind, trials in self.trials.items() if trials.waiting]:
                self.moved = now
                moves = self.tried(type_url) or moves
        return self.again(item for item in self.certain if self.accused[item].due <= now) or moves

    def lapse(self, own: Snapshot, units: Collection[UnitId]) -> None:
        """Drop accusations of units and versions missing in the computed snapshot.

        An accused resource that the group lacks is kept: such a resource was rejected as a dependency of a
        fallback, and may be needed again.
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
        """Return whether an accused unit or resource is in the computed snapshot `own`."""
        return any(isinstance(item, str) or item[1] in own.resources(item[0]) for item in self.accused)

    def trim(self, own: Snapshot, looked_up: Collection[Reference]) -> None:
        """Drop withheld resources needed neither by the group's snapshot nor by a fallback."""
        self._drop(
            {key for key in self.rejected if key not in looked_up and key[1] not in own.resources(key[0])}
        )

    def _out(self) -> Iterator[Suspect]:
        return (item for trials in self.trials.values() for item in trials.out)

    def _acquitted(self, trials: Trials[Suspect], key: Reference) -> Trials[Suspect]:
        """Acquit the suspected units of a resource: it is rejected without them too, so is itself guilty."""
        cleared = {
            item
            for item in trials.out
            if isinstance(item, str) and self.accused[item].key == key and not self.accused[item].confirmed
        }
        for unit_id in cleared:
            del self.accused[unit_id]
        return trials.less(cleared)

    def _drop(self, gone: Collection[Suspect]) -> None:
        if not gone:
            return
        for type_url, trials in self.trials.items():
            self.trials[type_url] = trials.less(gone)
        for item in gone:
            del self.accused[item]
        self._tidy()

    def _tidy(self) -> None:
        self.trials = {kind: trial for kind, trial in self.trials.items() if trial != Trials()}


@dataclass(slots=True)
class StreamRecord:
    """Record of rejections on one stream.

    `latest` caches the last snapshot of the proxy, with the stream's fallback snapshot made from it.
    """

    node: NodeKey
    record: Record = field(default_factory=Record)
    latest: tuple[Snapshot, Snapshot] | None = None


def pause(times: int, jitter: float) -> float:
    """Return the seconds until a suspect is offered again after `times` rejections in a row (from 1).

    `jitter` is a number from 0 to 1; a greater number gives a shorter pause. For example: 10 s after the
    first rejection, 20 s after the second, 600 s from the seventh on, each up to 20 % shorter.
    """
    doubled: float = FIRST_PAUSE_SECONDS * 2.0 ** min(times - 1, 10)
    return min(doubled, LONGEST_PAUSE_SECONDS) * (1 - SPREAD * jitter)
