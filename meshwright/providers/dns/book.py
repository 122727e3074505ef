"""All that is known of the names of all services, kept current: no input or output, and no clock.

An answer costs what it touches: the services whose names asked for it.
"""

import heapq
import itertools
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.names import ServiceName
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problems, ordered
from meshwright.mesh.service import Service, ServiceKey
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import Counts
from meshwright.providers.dns.last_answers import SavedAnswers
from meshwright.providers.dns.records import DnsAnswer, DnsFailure, Question, QuestionState
from meshwright.providers.dns.schedule import Pacing, heard, questions_of
from meshwright.providers.dns.slices import Slices, counts, problems, settled
from meshwright.providers.guard import GuardedValue
from meshwright.providers.moments import Moment


class DnsBook:
    """Which questions there are and when each is due; what was answered; what is in force by it.

    What is followed and heard counts once `settle` was called; `behind` says that its last call has left
    something for the next. It begins with what was `kept` by the one before, as far as that is wanted when
    everything has been looked at for the first time; all of it is asked for anew.
    """

    def __init__(self, pacing: Pacing, hold: timedelta, kept: SavedAnswers | None = None) -> None:
        self._pacing = pacing
        self._hold = hold
        self._wanted: dict[ServiceKey, Service] = {}
        self._touched: dict[ServiceKey, None] = {}
        self._needs: dict[ServiceKey, frozenset[Question]] = {}
        self._askers: dict[Question, set[ServiceKey]] = {}
        self._unasked: dict[Question, None] = {}
        self._agenda: list[tuple[Moment, Question]] = []
        self._forced: dict[ServiceKey, GuardedValue[Slices]] = dict(kept.in_force) if kept else {}
        self._held: dict[ServiceKey, Moment] = {}
        self._said: dict[ServiceKey, Problems] = {}
        self._counts: dict[ServiceKey, Counts] = {}
        self._restored = kept is not None
        self.known: dict[Question, QuestionState] = dict(kept.states) if kept else {}
        self.objects: Picture[ObjectKey, SourcedObject] = Picture()
        self.behind = False

    def follow(self, objects: Mapping[ObjectKey, SourcedObject | None]) -> bool:
        """Take over how objects have changed, None for those gone; say whether there is a name to look at.

        The Services among them that have names in the DNS are resolved from now on.
        """
        for key, sourced in objects.items():
            if key.kind != SERVICE:
                continue
            named, found = ServiceKey(key.namespace, ServiceName(key.name)), sourced and sourced.value
            wanted = found if isinstance(found, Service) and found.dns_names else None
            if wanted != self._wanted.get(named):
                self._touch((named,))
            if wanted is not None:
                self._wanted[named] = wanted
            else:
                self._wanted.pop(named, None)
        return bool(self._touched)

    def heard(self, question: Question, answer: DnsAnswer | DnsFailure, now: Moment, date: datetime) -> None:
        """Take over an answer; one that nobody waits for any more is nothing."""
        if question in self._askers:
            state = heard(self.known.get(question), answer, now, date, self._pacing)
            self.known[question] = state
            heapq.heappush(self._agenda, (state.due, question))
            self._touch(sorted(self._askers[question]))

    def settle(self, now: Moment, most: int | None = None) -> None:
        """Bring what is in force up to date: of all services, or of so many at the most (see `behind`)."""
        if not self.behind:  # what stays held for want of an answer would be looked at for ever
            self._touch(key for key, until in self._held.items() if until <= now)
        touched = list(itertools.islice(self._touched, most))
        for key in touched:
            del self._touched[key]
        self.behind = bool(self._touched)
        edits: dict[ObjectKey, SourcedObject | None] = {}
        for key in touched:
            self._take_needs(key)
            before = self._forced.get(key, GuardedValue(()))
            # All that it had, and then what it has: what is in both comes to no change.
            edits.update((each.key, None) for each in before.in_force)
            service = self._wanted.get(key)
            if service is None:
                self._forget(key)
                continue
            after = settled(service, self.known, before, now, self._hold)
            edits.update((each.key, each.sourced()) for each in after.in_force)
            self._remember(service, after)
        if edits:
            self.objects = self.objects.changed(edits)
        if self._restored and not self.behind:
            self._forget_unwanted()

    def due(self, now: Moment, room: int) -> list[Question]:
        """Take at most `room` questions that are to be asked now: new ones, then those that wait longest.

        Whoever takes one owes an answer to `heard`, or returns it.
        """
        found = list(self._unasked)[:room]
        for question in found:
            del self._unasked[question]
        while len(found) < room and self._agenda and self._agenda[0][0] <= now:
            moment, question = heapq.heappop(self._agenda)
            # A question that was put off stands here twice; its older entry is nothing.
            if question in self.known and self.known[question].due == moment:
                found.append(question)
        return found

    def give_back(self, question: Question) -> None:
        """Return a question that was taken and not asked."""
        if question in self.known:
            heapq.heappush(self._agenda, (self.known[question].due, question))
        elif question in self._askers:
            self._unasked[question] = None

    def next_due(self, now: Moment, *, room: bool) -> Moment | None:
        """Return when there is something to do: a question, if there is room for one, or a belief."""
        moments = [until for until in self._held.values() if until > now]
        if room and self._agenda:
            moments.append(self._agenda[0][0])
        return min(moments, default=None)

    def complete(self) -> bool:
        """Say whether something is known of every question."""
        return not self._touched and len(self.known) == len(self._askers)

    def kept(self) -> SavedAnswers:
        """Return what another book can begin with; what is heard later leaves it as it is."""
        return SavedAnswers(dict(self.known), dict(self._forced))

    def problems(self) -> Problems:
        """Return what is wrong, sorted."""
        return ordered(problem for said in self._said.values() for problem in said)

    def held(self) -> tuple[ServiceKey, ...]:
        """Return the services whose emptiness is held back, sorted."""
        return tuple(sorted(self._held))

    def counts(self) -> Counts:
        """Count the names."""
        of = self._counts.values()
        return Counts(sum(c.good for c in of), sum(c.stale for c in of), sum(c.refused for c in of))

    def _touch(self, keys: Iterable[ServiceKey]) -> None:
        self._touched.update(dict.fromkeys(keys))

    def _take_needs(self, key: ServiceKey) -> None:
        """Ask what a service's names need now, and forget what nobody needs any more."""
        service, before = self._wanted.get(key), self._needs.pop(key, frozenset())
        names = service.dns_names if service is not None else ()
        needs = frozenset(question for name in names for question in questions_of(name, self.known))
        for question in before - needs:
            self._askers[question].discard(key)
            if not self._askers[question]:
                del self._askers[question]
                self.known.pop(question, None)
                self._unasked.pop(question, None)
        for question in sorted(needs - before):
            if question not in self._askers:
                self._askers[question] = set()
                self._unasked[question] = None
            self._askers[question].add(key)
        if needs:
            self._needs[key] = needs

    def _remember(self, service: Service, forced: GuardedValue[Slices]) -> None:
        key = service.key
        self._forced[key] = forced
        self._said[key] = problems(service, self.known, forced)
        self._counts[key] = counts(service, self.known)
        if forced.held_since is None:
            self._held.pop(key, None)
        else:
            self._held[key] = forced.held_since + self._hold

    def _forget_unwanted(self) -> None:
        """Drop what was kept and nobody asks for any more."""
        self._restored = False
        self.known = {each: state for each, state in self.known.items() if each in self._askers}
        self._forced = {key: forced for key, forced in self._forced.items() if key in self._wanted}

    def _forget(self, key: ServiceKey) -> None:
        for table in (self._forced, self._held, self._said, self._counts):
            table.pop(key, None)
