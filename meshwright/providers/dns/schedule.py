"""Schedule of DNS questions: pure functions of names, states and the time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from meshwright.mesh.service import DnsName
from meshwright.providers.dns.records import DnsAnswer, DnsFailure, Question, QuestionState, RecordType
from meshwright.providers.moments import Moment

RETRY: Final = timedelta(seconds=30)
"""Maximum pause between questions that fail or return nothing, unless `floor` is longer."""

_MOST_DOUBLINGS: Final = 16


@dataclass(frozen=True, slots=True)
class Pacing:
    """Minimum and maximum time until a DNS question is repeated, whatever the TTL."""

    floor: timedelta = timedelta(seconds=5)
    ceiling: timedelta = timedelta(minutes=5)

    def after(self, ttl: float) -> timedelta:
        """Return the time until a question is repeated after an answer with this TTL (in seconds)."""
        return min(max(timedelta(seconds=ttl), self.floor), self.ceiling)

    def empty(self, ttl: float, missing: int) -> timedelta:
        """Return the time for which an answer without records is used; `missing` is as in `QuestionState`."""
        return self.again(missing) if missing else min(self.after(ttl), max(RETRY, self.floor))

    def again(self, times: int) -> timedelta:
        """Return the pause after so many failures in a row, from 1 on; the pause doubles each time."""
        return min(self.floor * (1 << min(times - 1, _MOST_DOUBLINGS)), max(RETRY, self.floor))


PACING: Final = Pacing()


def questions_of(name: DnsName, known: Mapping[Question, QuestionState]) -> frozenset[Question]:
    """Return the present questions for one name; for SRV this includes the addresses of known targets."""
    if not name.srv:
        return frozenset(_address_questions(name.name))
    first = Question(name.name, RecordType.SRV)
    state = known.get(first)
    hosts = {target.name for target in state.targets} if state is not None else set()
    return frozenset({first, *(question for host in hosts for question in _address_questions(host))})


def _address_questions(name: str) -> tuple[Question, Question]:
    return Question(name, RecordType.A), Question(name, RecordType.AAAA)


def state_after(
    before: QuestionState | None, answer: DnsAnswer | DnsFailure, now: Moment, date: datetime, pacing: Pacing
) -> QuestionState:
    """Return the state of a question after an answer; a failure keeps the last good answer.

    If records have disappeared, the question is repeated soon, whatever the TTL (see providers.guard), and
    then less and less often. A name that never had records is queried again after RETRY at most, since
    records may be added.
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
    """Return the number of empty answers since the last records, this one included; 0 without any records."""
    if before is None:
        return 0
    return before.missing + 1 if before.missing or before.addresses or before.targets else 0
