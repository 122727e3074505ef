"""What is asked of the DNS, and when."""

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
from meshwright.providers.dns.schedule import Pacing, heard, questions_of
from meshwright.providers.moments import Moment

NOW = timedelta(hours=3)
DATE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PACING = Pacing(timedelta(seconds=5), timedelta(seconds=300))
A, AAAA = Question("db.test", RecordType.A), Question("db.test", RecordType.AAAA)
SRV = Question("_db._tcp.test", RecordType.SRV)
ADDRESSES = (IpAddress("10.0.0.1"),)


def after(seconds: float) -> Moment:
    """Return a moment so many seconds later."""
    return NOW + timedelta(seconds=seconds)


def test_a_name_is_asked_for_both_kinds_of_address() -> None:
    """With or without a port."""
    assert questions_of(DnsName("db.test"), {}) == {A, AAAA}
    assert questions_of(DnsName("db.test", Port(1)), {}) == {A, AAAA}


def test_the_hosts_of_srv_records_are_asked_for_once_they_are_known() -> None:
    """First the SRV records alone."""
    name = DnsName("_db._tcp.test", srv=True)
    assert questions_of(name, {}) == {SRV}
    known = {SRV: QuestionState(NOW, DATE, targets=(Target(0, 0, Port(5), "db.test"),))}
    assert questions_of(name, known) == {SRV, A, AAAA}


@pytest.mark.parametrize(("ttl", "wait"), [(0, 5), (4, 5), (60, 60), (301, 300), (2**31 - 1, 300)])
def test_an_answer_counts_for_its_ttl(ttl: float, wait: float) -> None:
    """Between floor and ceiling."""
    assert heard(None, DnsAnswer(ttl, ADDRESSES), NOW, DATE, PACING) == QuestionState(
        after(wait), DATE, ADDRESSES
    )


def test_nothing_found_is_asked_again_before_long() -> None:
    """Whatever the negative TTL."""
    assert heard(None, DnsAnswer(3600), NOW, DATE, PACING) == QuestionState(after(30), DATE)
    assert heard(QuestionState(NOW, DATE), DnsAnswer(3600), NOW, DATE, PACING) == QuestionState(
        after(30), DATE
    )
    assert heard(None, DnsAnswer(7), NOW, DATE, PACING) == QuestionState(after(7), DATE)


def test_what_has_gone_is_asked_for_again_soon() -> None:
    """From the floor on, ever less often; what is back counts for its TTL."""
    state = QuestionState(NOW, DATE, ADDRESSES)
    waits = []
    for _ in range(5):
        state = heard(state, DnsAnswer(3600), NOW, DATE, PACING)
        waits.append((state.due - NOW).total_seconds())
    assert waits == [5, 10, 20, 30, 30]
    assert state == QuestionState(after(30), DATE, missing=5)
    assert heard(state, DnsAnswer(60, ADDRESSES), NOW, DATE, PACING) == QuestionState(
        after(60), DATE, ADDRESSES
    )


def test_a_failure_keeps_the_last_good_answer() -> None:
    """It says why and since when, and the pauses grow to a limit."""
    state = QuestionState(NOW, DATE, ADDRESSES)
    waits = []
    for _ in range(6):
        state = heard(state, DnsFailure("SERVFAIL"), NOW, DATE, PACING)
        waits.append((state.due - NOW).total_seconds())
    assert waits == [5, 10, 20, 30, 30, 30]
    assert state == QuestionState(after(30), DATE, ADDRESSES, (), 0, 6, "SERVFAIL", DATE)
    assert heard(state, DnsFailure("other"), NOW, DATE + timedelta(9), PACING).error_since == DATE
    assert heard(state, DnsAnswer(60, ADDRESSES), NOW, DATE, PACING) == QuestionState(
        after(60), DATE, ADDRESSES
    )


def test_many_failures_are_no_overflow() -> None:
    """A nameserver that is away for years."""
    state = replace(QuestionState(NOW), failures=10**6)
    assert heard(state, DnsFailure("x"), NOW, DATE, PACING).due == after(30)
