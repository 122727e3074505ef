"""Tests of saved DNS answers: their file format, and a book that starts with them."""

from datetime import UTC, datetime, timedelta

import pytest

from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.service import DnsName, Protocol, Service, ServiceKey, ServicePort
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import Counts
from meshwright.providers.dns.book import DnsBook
from meshwright.providers.dns.last_answers import LONG_DUE, SavedAnswers, SavedAnswersError, read, written
from meshwright.providers.dns.records import (
    DnsAnswer,
    DnsFailure,
    Question,
    QuestionState,
    RecordType,
    Target,
)
from meshwright.providers.dns.schedule import Pacing
from meshwright.providers.dns.slices import FoundSlice
from meshwright.providers.guard import GuardedValue
from tests.meshes.sources import instead, slices

NOW = timedelta(hours=3)
DATE, LATER = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2026, 1, 2, 4, 4, 5, tzinfo=UTC)
PACING = Pacing(timedelta(seconds=5), timedelta(seconds=300))
HOLD = timedelta(seconds=30)
DB = ServiceKey(Namespace("shop"), ServiceName("db"))
A, AAAA = Question("db.test", RecordType.A), Question("db.test", RecordType.AAAA)
SRV = Question("_db.test", RecordType.SRV)
HOST = Question("one.test", RecordType.A)
ADDRESS, OTHER = IpAddress("10.0.0.1"), IpAddress("fd00::1")
VALUE = EndpointSlice("db", Namespace("shop"), "db-dns", (ADDRESS, OTHER), (("http", 8080),))
SLICES = (FoundSlice(VALUE, "db.test at 10.0.0.53"),)
KEPT = SavedAnswers(
    {
        SRV: QuestionState(LONG_DUE, DATE, targets=(Target(1, 2, Port(5), "one.test"),)),
        A: QuestionState(LONG_DUE, DATE, (ADDRESS, OTHER), nameserver="10.0.0.53"),
        AAAA: QuestionState(LONG_DUE, LATER),
    },
    {DB: GuardedValue(SLICES)},
)


def _service(*names: str, srv: bool = False) -> Service:
    port = ServicePort(Port(80), Port(8080), Protocol.HTTP, "http")
    return Service(DB, (port,), dns_names=tuple(DnsName(name, srv=srv) for name in names))


def _book(kept: SavedAnswers | None, *services: Service) -> DnsBook:
    book = DnsBook(PACING, HOLD, kept)
    book.follow(instead(services))
    book.settle(NOW)
    return book


def _answered(book: DnsBook, **addresses: str) -> None:
    """Answer all due questions; the names given have an A record, the others have no addresses."""
    for question in book.due(NOW, 9):
        label = question.name.partition(".")[0]
        result = (
            (IpAddress(addresses[label]),) if label in addresses and question.record is RecordType.A else ()
        )
        book.accept(question, DnsAnswer(60, result), NOW, DATE)
    book.settle(NOW)


def test_saved_answers_round_trip_in_a_fixed_order() -> None:
    """Good answers with their dates and the slices in force are saved; errors are not."""
    reverse = SavedAnswers(dict(reversed(list(KEPT.states.items()))), KEPT.in_force)
    more = {
        **KEPT.states,
        HOST: QuestionState(NOW, failures=2, error="SERVFAIL", error_since=DATE),
        AAAA: QuestionState(NOW, LATER, missing=3, failures=1, error="SERVFAIL", error_since=LATER),
    }
    gone = ServiceKey(Namespace("shop"), ServiceName("gone"))
    assert read(written(KEPT)) == KEPT
    assert written(reverse) == written(KEPT)
    assert written(SavedAnswers(more, {**KEPT.in_force, gone: GuardedValue(())})) == written(KEPT)
    assert read(written(SavedAnswers())) == SavedAnswers()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"", b"", "Invalid JSON: EOF while parsing an object at line 2 column 92"),
        (b'"version": 1', b'"version": 2', "version: Input should be 1"),
        (b'"10.0.0.1"', b'"10.0.0.256"', "addresses.0: Value error, must be an IP address of one machine"),
        (b'"AAAA"', b'"MX"', "record: Input should be 'A', 'AAAA' or 'SRV'"),
        (b'"answered"', b'"heard"', "answered: Field required"),
        (b"04:05Z", b"04:05", "answered: Input should have timezone info"),
        (b"8080", b"80800", "ports.0.1: Input should be less than or equal to 65535"),
        (b"{", b"[", "Invalid JSON: expected `,` or `]` at line 1 column 11"),
    ],
)
def test_damaged_answers_are_refused_with_the_place_of_the_error(old: bytes, new: bytes, why: str) -> None:
    """The file may be truncated, of another version, or edited."""
    content = written(KEPT)
    with pytest.raises(SavedAnswersError) as caught:
        read(content.replace(old, new) if old else content[:120])
    assert str(caught.value).endswith(why)


def test_book_starts_with_the_saved_slices_and_answers() -> None:
    """All questions are due at once, and a failure keeps the saved slices in force."""
    before = _book(None, _service("db.test"))
    _answered(before, db="10.0.0.1")
    book = _book(read(written(before.kept())), _service("db.test"))
    assert (book.objects, book.complete(), book.counts()) == (before.objects, True, Counts(good=1))
    assert book.known[A].answered == DATE
    assert book.due(NOW, 9) == [A, AAAA]
    for question in (A, AAAA):
        book.accept(question, DnsFailure("SERVFAIL"), NOW, LATER)
    book.settle(NOW)
    assert (book.objects, book.counts()) == (before.objects, Counts(stale=1))
    (problem,) = book.problems()
    assert "the addresses of the last good answer (2026-01-02T03:04:05Z) stay in force" in problem.expected
    assert (book.known[A].answered, book.known[A].error_since) == (DATE, LATER)


def test_book_without_saved_answers_starts_empty() -> None:
    """Negative control of the test above."""
    book = _book(SavedAnswers(), _service("db.test"))
    assert (book.objects, book.complete()) == (Picture(), False)
    for question in book.due(NOW, 9):
        book.accept(question, DnsFailure("SERVFAIL"), NOW, LATER)
    book.settle(NOW)
    assert (book.objects, book.counts()) == (Picture(), Counts(refused=1))


def test_addresses_of_srv_hosts_are_saved() -> None:
    """The SRV records lead to hosts, whose addresses are known after a restart too."""
    before = _book(None, _service("_db.test", srv=True))
    assert before.due(NOW, 9) == [SRV]
    before.accept(SRV, DnsAnswer(60, targets=(Target(0, 0, Port(5), "one.test"),)), NOW, DATE)
    before.settle(NOW)
    _answered(before, one="10.0.0.7")
    assert [endpoint_slice.name for endpoint_slice in slices(before.objects)] == ["db-dns-5"]
    book = _book(read(written(before.kept())), _service("_db.test", srv=True))
    assert (book.objects, book.complete()) == (before.objects, True)


def test_held_empty_answer_is_held_again_after_a_restart() -> None:
    """The whole hold starts again, because the length of the restart is unknown."""
    before = _book(None, _service("db.test"))
    _answered(before, db="10.0.0.1")
    for question in (A, AAAA):
        before.accept(question, DnsAnswer(60), NOW, DATE)
    before.settle(NOW)
    book = _book(read(written(before.kept())), _service("db.test"))
    assert (book.objects, book.held_services()) == (before.objects, (DB,))
    book.settle(NOW + HOLD)
    assert (book.objects, book.held_services()) == (Picture(), ())
    assert read(written(book.kept())).in_force == {}


def test_saved_answers_of_removed_names_and_services_are_dropped() -> None:
    """A service that returns later starts empty.

    Slices of a service whose names have changed stay until there is an answer to the new names.
    """
    other = _service("other.test")
    book = _book(KEPT, other)
    assert book.known == {}
    assert [endpoint_slice.name for endpoint_slice in slices(book.objects)] == [
        "db-dns"
    ]  # until there is an answer
    book = _book(KEPT)
    assert (book.known, book.objects, book.kept()) == ({}, Picture(), SavedAnswers())
    book.follow(instead([_service("db.test")]))
    book.settle(NOW)
    assert book.objects == Picture()
