"""Tests of the DNS schedule: the questions of a name, and the time of the next one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.service import DnsName
from meshwright.providers.dns.records import (
    DnsAnswer,
    DnsFailure,
    Question,
    QuestionState,
    RecordType,
    Target,
)
from meshwright.providers.dns.schedule import Pacing, questions_of, state_after
from meshwright.providers.moments import Moment

NOW = timedelta(hours=3)
DATE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PACING = Pacing(timedelta(seconds=5), timedelta(seconds=300))
A, AAAA = Question("db.test", RecordType.A), Question("db.test", RecordType.AAAA)
SRV = Question("_db._tcp.test", RecordType.SRV)
ADDRESSES = (IpAddress("10.0.0.1"),)


def after(seconds: float) -> Moment:
    """Return the moment so many seconds after NOW."""
    return NOW + timedelta(seconds=seconds)


def test_name_has_questions_for_ipv4_and_ipv6() -> None:
    """The same holds for a name with a port."""
    assert questions_of(DnsName("db.test"), {}) == {A, AAAA}
    assert questions_of(DnsName("db.test", Port(1)), {}) == {A, AAAA}


def test_srv_name_adds_questions_for_its_known_hosts() -> None:
    """Before the SRV records are known, they are the only question."""
    name = DnsName("_db._tcp.test", srv=True)
    assert questions_of(name, {}) == {SRV}
    known = {SRV: QuestionState(NOW, DATE, targets=(Target(0, 0, Port(5), "db.test"),))}
    assert questions_of(name, known) == {SRV, A, AAAA}


@pytest.mark.parametrize(("ttl", "wait"), [(0, 5), (4, 5), (60, 60), (301, 300), (2**31 - 1, 300)])
def test_answer_is_valid_for_its_ttl_within_the_limits(ttl: float, wait: float) -> None:
    """A TTL below the floor or above the ceiling is replaced by that limit."""
    assert state_after(None, DnsAnswer(ttl, ADDRESSES), NOW, DATE, PACING) == QuestionState(
        after(wait), DATE, ADDRESSES
    )


def test_empty_answer_is_asked_again_after_at_most_30_seconds() -> None:
    """A longer negative TTL is ignored, and a shorter one is used."""
    assert state_after(None, DnsAnswer(3600), NOW, DATE, PACING) == QuestionState(after(30), DATE)
    assert state_after(QuestionState(NOW, DATE), DnsAnswer(3600), NOW, DATE, PACING) == QuestionState(
        after(30), DATE
    )
    assert state_after(None, DnsAnswer(7), NOW, DATE, PACING) == QuestionState(after(7), DATE)


def test_vanished_addresses_are_asked_for_with_growing_pauses() -> None:
    """The pauses grow from the floor to 30 s; addresses that return are valid for their TTL."""
    state = QuestionState(NOW, DATE, ADDRESSES)
    waits = []
    for _ in range(5):
        state = state_after(state, DnsAnswer(3600), NOW, DATE, PACING)
        waits.append((state.due - NOW).total_seconds())
    assert waits == [5, 10, 20, 30, 30]
    assert state == QuestionState(after(30), DATE, missing=5)
    assert state_after(state, DnsAnswer(60, ADDRESSES), NOW, DATE, PACING) == QuestionState(
        after(60), DATE, ADDRESSES
    )


def test_failure_keeps_the_last_good_answer_and_is_retried_with_growing_pauses() -> None:
    """The state has the error and its start, and the pauses are limited to 30 s."""
    state = QuestionState(NOW, DATE, ADDRESSES)
    waits = []
    for _ in range(6):
        state = state_after(state, DnsFailure("SERVFAIL"), NOW, DATE, PACING)
        waits.append((state.due - NOW).total_seconds())
    assert waits == [5, 10, 20, 30, 30, 30]
    assert state == QuestionState(after(30), DATE, ADDRESSES, (), 0, 6, "SERVFAIL", DATE)
    assert state_after(state, DnsFailure("other"), NOW, DATE + timedelta(9), PACING).error_since == DATE
    assert state_after(state, DnsAnswer(60, ADDRESSES), NOW, DATE, PACING) == QuestionState(
        after(60), DATE, ADDRESSES
    )


def test_a_million_failures_cause_no_overflow() -> None:
    """A nameserver may be unreachable for years."""
    state = replace(QuestionState(NOW), failures=10**6)
    assert state_after(state, DnsFailure("x"), NOW, DATE, PACING).due == after(30)
