"""State of all DNS names of all services, without input, output or a clock.

The cost of an answer grows with the services whose names need the answer, not with all services.
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
from meshwright.providers.dns.schedule import Pacing, questions_of, state_after
from meshwright.providers.dns.slices import Slices, counts, problems, settled
from meshwright.providers.guard import GuardedValue
from meshwright.providers.moments import Moment


class DnsBook:
    """The questions with their due times, the answers, and the endpoint slices in force.

    Changes from `follow` and `accept` take effect in `settle`; `behind` is True if the last `settle` has left
    services for the next. The book begins with the answers `kept` from a previous run. Obsolete ones are
    dropped after the first complete `settle`, and all the others are queried anew.
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
        self._held_since: dict[ServiceKey, Moment] = {}
        self._problems: dict[ServiceKey, Problems] = {}
        self._counts: dict[ServiceKey, Counts] = {}
        self._restored = kept is not None
        self.known: dict[Question, QuestionState] = dict(kept.states) if kept else {}
        self.objects: Picture[ObjectKey, SourcedObject] = Picture()
        self.behind = False

    def follow(self, objects: Mapping[ObjectKey, SourcedObject | None]) -> bool:
        """Accept changed objects, None for removed ones; return whether `settle` has work.

        The DNS names of Services among the objects are resolved from now on.
        """
        for key, sourced in objects.items():
            if key.kind != SERVICE:
                continue
            named, result = ServiceKey(key.namespace, ServiceName(key.name)), sourced and sourced.value
            wanted = result if isinstance(result, Service) and result.dns_names else None
            if wanted != self._wanted.get(named):
                self._touch((named,))
            if wanted is not None:
                self._wanted[named] = wanted
            else:
                self._wanted.pop(named, None)
        return bool(self._touched)

    def accept(self, question: Question, answer: DnsAnswer | DnsFailure, now: Moment, date: datetime) -> None:
        """Accept a DNS answer or failure; results for obsolete questions are dropped."""
        if question in self._askers:
            state = state_after(self.known.get(question), answer, now, date, self._pacing)
            self.known[question] = state
            heapq.heappush(self._agenda, (state.due, question))
            self._touch(sorted(self._askers[question]))

    def settle(self, now: Moment, most: int | None = None) -> None:
        """Bring the slices that apply up to date, for all touched services or at most `most` of them."""
        if not self.behind:  # only then, else services held without a new answer would be looked at for ever
            self._touch(key for key, until in self._held_since.items() if until <= now)
        touched = list(itertools.islice(self._touched, most))
        for key in touched:
            del self._touched[key]
        self.behind = bool(self._touched)
        edits: dict[ObjectKey, SourcedObject | None] = {}
        for key in touched:
            self._take_needs(key)
            before = self._forced.get(key, GuardedValue(()))
            # Remove all old slices, then add the present ones: an equal slice results in no change.
            edits.update((found_slice.key, None) for found_slice in before.in_force)
            service = self._wanted.get(key)
            if service is None:
                self._forget(key)
                continue
            after = settled(service, self.known, before, now, self._hold)
            edits.update((found_slice.key, found_slice.sourced()) for found_slice in after.in_force)
            self._remember(service, after)
        if edits:
            self.objects = self.objects.changed(edits)
        if self._restored and not self.behind:
            self._forget_unwanted()

    def due(self, now: Moment, room: int) -> list[Question]:
        """Take at most `room` due questions: new ones first, then the longest overdue.

        The caller must pass each of them to `accept` with an answer, or to `give_back`.
        """
        questions = list(self._unasked)[:room]
        for question in questions:
            del self._unasked[question]
        while len(questions) < room and self._agenda and self._agenda[0][0] <= now:
            moment, question = heapq.heappop(self._agenda)
            # A postponed question has two entries in the heap; the older one is ignored.
            if question in self.known and self.known[question].due == moment:
                questions.append(question)
        return questions

    def give_back(self, question: Question) -> None:
        """Accept a question back after `due` has returned it, because it was not asked."""
        if question in self.known:
            heapq.heappush(self._agenda, (self.known[question].due, question))
        elif question in self._askers:
            self._unasked[question] = None

    def next_due(self, now: Moment, *, room: bool) -> Moment | None:
        """Return the moment of the next work: a question, if there is `room`, or the end of a hold."""
        moments = [until for until in self._held_since.values() if until > now]
        if room and self._agenda:
            moments.append(self._agenda[0][0])
        return min(moments, default=None)

    def complete(self) -> bool:
        """Return whether every DNS question has an answer or a failure."""
        return not self._touched and len(self.known) == len(self._askers)

    def kept(self) -> SavedAnswers:
        """Return a copy of answers and slices, to be saved for the next run."""
        return SavedAnswers(dict(self.known), dict(self._forced))

    def problems(self) -> Problems:
        """Return the problems of all services with DNS names, sorted."""
        return ordered(problem for answer in self._problems.values() for problem in answer)

    def held_services(self) -> tuple[ServiceKey, ...]:
        """Return the services for which an empty DNS answer is not yet accepted, sorted."""
        return tuple(sorted(self._held_since))

    def counts(self) -> Counts:
        """Return the numbers of DNS names: answered, answered from memory, and never answered."""
        of = self._counts.values()
        return Counts(sum(c.good for c in of), sum(c.stale for c in of), sum(c.refused for c in of))

    def _touch(self, keys: Iterable[ServiceKey]) -> None:
        self._touched.update(dict.fromkeys(keys))

    def _take_needs(self, key: ServiceKey) -> None:
        """Update the DNS questions that a service needs, and drop questions that no service needs."""
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
        self._problems[key] = problems(service, self.known, forced)
        self._counts[key] = counts(service, self.known)
        if forced.held_since is None:
            self._held_since.pop(key, None)
        else:
            self._held_since[key] = forced.held_since + self._hold

    def _forget_unwanted(self) -> None:
        """Drop the saved answers and slices that no service needs now."""
        self._restored = False
        self.known = {question: state for question, state in self.known.items() if question in self._askers}
        self._forced = {key: forced for key, forced in self._forced.items() if key in self._wanted}

    def _forget(self, key: ServiceKey) -> None:
        for table in (self._forced, self._held_since, self._problems, self._counts):
            table.pop(key, None)
