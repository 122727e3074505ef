"""What to ask the DNS and when: functions of the names, what is known of them, and the time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from meshwright.mesh.service import DnsName
from meshwright.providers.dns.records import DnsAnswer, DnsFailure, Question, QuestionState, RecordType
from meshwright.providers.moments import Moment

RETRY: Final = timedelta(seconds=30)
"""The longest pause between questions that fail or find nothing, unless `floor` is longer."""

_MOST_DOUBLINGS: Final = 16


@dataclass(frozen=True, slots=True)
class Pacing:
    """How soon, and how late at the latest, a question is asked again, whatever the TTL says."""

    floor: timedelta = timedelta(seconds=5)
    ceiling: timedelta = timedelta(minutes=5)

    def after(self, ttl: float) -> timedelta:
        """Return how long an answer counts."""
        return min(max(timedelta(seconds=ttl), self.floor), self.ceiling)

    def empty(self, ttl: float, missing: int) -> timedelta:
        """Return how long an answer without records counts: `missing` as Standing has it."""
        return self.again(missing) if missing else min(self.after(ttl), max(RETRY, self.floor))

    def again(self, times: int) -> timedelta:
        """Return the pause after so many answers in a row that did not help, from 1 on: it doubles."""
        return min(self.floor * (1 << min(times - 1, _MOST_DOUBLINGS)), max(RETRY, self.floor))


PACING: Final = Pacing()


def questions_of(name: DnsName, known: Mapping[Question, QuestionState]) -> frozenset[Question]:
    """Return the questions that one name needs now."""
    if not name.srv:
        return frozenset(_address_questions(name.name))
    first = Question(name.name, RecordType.SRV)
    state = known.get(first)
    hosts = {target.name for target in state.targets} if state is not None else set()
    return frozenset({first, *(question for host in hosts for question in _address_questions(host))})


def _address_questions(name: str) -> tuple[Question, Question]:
    return Question(name, RecordType.A), Question(name, RecordType.AAAA)


def heard(
    before: QuestionState | None, answer: DnsAnswer | DnsFailure, now: Moment, date: datetime, pacing: Pacing
) -> QuestionState:
    """Return what is known of a question after an answer; a failure leaves the last good one as it was.

    Where records have gone, the question is asked again soon, whatever the TTL says (see providers.guard),
    then ever less often; where there never were any, after RETRY at the latest, since they may come.
    """
    match answer:
        case DnsFailure(reason):
            known = before or QuestionState(now)
            failures = known.failures + 1
            return replace(
                known,
                due=now + pacing.again(failures),
                failures=failures,
                error=reason,
                error_since=known.error_since or date,
            )
        case DnsAnswer(ttl, addresses, targets, nameserver):
            if addresses or targets:
                same = before is not None and (before.addresses, before.targets) == (addresses, targets)
                first = before.nameserver if before is not None and same else nameserver
                due = now + pacing.after(ttl)
                return QuestionState(due, date, addresses, targets, nameserver=first)
            missing = _missing(before)
            return QuestionState(now + pacing.empty(ttl, missing), date, missing=missing)


def _missing(before: QuestionState | None) -> int:
    """Return how often records are missing with an answer that has none."""
    if before is None:
        return 0
    return before.missing + 1 if before.missing or before.addresses or before.targets else 0
