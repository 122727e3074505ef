"""Tests of the book of DNS names: due questions, and the services that an answer affects."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.problems.problem import ordered
from meshwright.mesh.service import DnsName, Protocol, Service, ServiceKey, ServicePort
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import Counts
from meshwright.providers.dns.book import DnsBook
from meshwright.providers.dns.last_answers import read, written
from meshwright.providers.dns.records import DnsAnswer, DnsFailure, Question, RecordType, Target
from meshwright.providers.dns.schedule import Pacing
from meshwright.providers.dns.slices import Slices, counts, problems, settled
from meshwright.providers.guard import GuardedValue
from meshwright.providers.moments import Moment
from tests.meshes.sources import instead, slices
from tests.tools.hypothesis_profiles import examples

NOW = timedelta(hours=3)
DATE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PACING = Pacing(timedelta(seconds=5), timedelta(seconds=300))
HOLD = timedelta(seconds=30)
A, AAAA = Question("db.test", RecordType.A), Question("db.test", RecordType.AAAA)
FOUND = DnsAnswer(60, (IpAddress("10.0.0.1"),))
HOSTS = ("a.test", "b.test", "c.test")


def service(name: str, *names: DnsName) -> Service:
    """Create a service."""
    port = ServicePort(Port(80), Port(8080), Protocol.HTTP, "http")
    return Service(ServiceKey(Namespace("shop"), ServiceName(name)), (port,), dns_names=names)


def after(seconds: float) -> Moment:
    """Return the moment so many seconds after NOW."""
    return NOW + timedelta(seconds=seconds)


def _book(*services: Service) -> DnsBook:
    book = DnsBook(PACING, HOLD)
    book.follow(instead(services))
    book.settle(NOW)
    return book


def test_new_question_is_due_at_once_and_an_answered_one_when_it_expires() -> None:
    """At most as many questions as there is room for are taken, and each only once."""
    book = _book(service("db", DnsName("db.test")))
    assert (book.due(NOW, 1), book.due(NOW, 9), book.due(NOW, 9)) == ([A], [AAAA], [])
    assert (book.complete(), book.next_due(NOW, room=True)) == (False, None)
    book.accept(A, FOUND, NOW, DATE)
    book.accept(AAAA, DnsFailure("SERVFAIL"), NOW, DATE)
    book.settle(NOW)
    assert (book.complete(), book.next_due(NOW, room=True)) == (True, after(5))
    assert (book.due(after(4), 9), book.due(after(60), 9)) == ([], [AAAA, A])


def test_many_services_are_settled_in_batches() -> None:
    """The book is complete only after all services were settled and their questions answered."""
    book = DnsBook(PACING, HOLD)
    book.follow(instead(service(f"s{number}", DnsName(f"s{number}.test")) for number in range(3)))
    seen = []
    for _ in range(2):
        book.settle(NOW, 2)
        asked = book.due(NOW, 9)
        seen.append((len(asked), book.behind, book.complete()))
        for question in asked:
            book.accept(question, FOUND, NOW, DATE)
    assert seen == [(4, True, False), (2, True, False)]
    book.settle(NOW)
    assert (book.due(NOW, 9), book.behind, book.complete()) == ([], False, True)


def test_returned_question_is_due_as_before() -> None:
    """This holds for questions with and without an earlier answer."""
    book = _book(service("db", DnsName("db.test")))
    assert book.due(NOW, 9) == [A, AAAA]
    book.accept(AAAA, FOUND, NOW, DATE)
    book.give_back(A)
    assert book.due(after(60), 9) == [A, AAAA]
    book.give_back(AAAA)
    assert book.due(after(60), 9) == [AAAA]


def test_removed_service_loses_its_questions_slices_and_problems() -> None:
    """An answer that arrives after the removal is ignored."""
    book = _book(service("db", DnsName("db.test")))
    taken = book.due(NOW, 9)
    book.accept(A, FOUND, NOW, DATE)
    book.settle(NOW)
    assert [endpoint_slice.addresses for endpoint_slice in slices(book.objects)] == [("10.0.0.1",)]
    book.follow(instead((), [service("db", DnsName("db.test"))]))
    book.settle(NOW)
    for question in taken:
        book.accept(question, FOUND, NOW, DATE)
        book.give_back(question)
    book.settle(NOW)
    assert (book.objects, book.problems(), book.counts()) == (Picture(), (), Counts())
    assert (book.known, book.due(after(999), 9), book.next_due(NOW, room=True)) == ({}, [], None)


def test_held_empty_answer_is_due_after_the_hold() -> None:
    """It is due even if there is no room for another question."""
    book = _book(service("db", DnsName("db.test")))
    for answer in (FOUND, DnsAnswer(60)):
        book.accept(A, answer, NOW, DATE)
        book.accept(AAAA, DnsAnswer(60), NOW, DATE)
        book.settle(NOW)
    assert [str(service_key) for service_key in book.held_services()] == ["shop/db"]
    assert book.next_due(NOW, room=False) == after(30)
    assert len(book.objects) == 1
    book.settle(after(30))
    assert (book.held_services(), book.objects, book.next_due(NOW, room=False)) == ((), Picture(), None)


class _OneServiceBook(DnsBook):
    """A book that updates only one of the services that asked a question."""

    def accept(self, question: Question, answer: DnsAnswer | DnsFailure, now: Moment, date: datetime) -> None:
        """Store an answer, and mark only one of its services as changed."""
        before = dict(self._touched)
        super().accept(question, answer, now, date)
        self._touched = before | dict.fromkeys(sorted(self._touched.keys() - before)[:1])


def _names(random_: random.Random) -> tuple[DnsName, ...]:
    names = [DnsName(host) for host in HOSTS] + [DnsName("a.test", Port(5)), DnsName("s.test", srv=True)]
    return tuple(random_.sample(names, random_.randrange(3)))


def _answer(random_: random.Random, question: Question) -> DnsAnswer | DnsFailure:
    if random_.random() < 0.3:
        return DnsFailure("SERVFAIL")
    few = random_.randrange(3)
    if question.record is RecordType.SRV:
        targets = (Target(random_.randrange(2), 0, Port(7), host) for host in random_.sample(HOSTS, few))
        return DnsAnswer(60, targets=tuple(sorted(targets)))
    return DnsAnswer(60, tuple(IpAddress(f"10.0.0.{number}") for number in range(few)))


def _history(seed: int, book: DnsBook) -> Iterator[tuple[Moment, dict[ServiceKey, Service]]]:
    """Run a book through a random history; yield the time and the wanted services after each step."""
    random_ = random.Random(seed)  # noqa: S311 - a history, no secret
    wanted: dict[ServiceKey, Service] = {}
    now = NOW
    for _ in range(40):
        now += timedelta(seconds=random_.choice((0, 1, 20)))
        if random_.random() < 0.2:
            services = [service(name, *_names(random_)) for name in "xyz"]
            book.follow(instead(services))
            wanted = {item.key: item for item in services if item.dns_names}
        else:
            for question in book.due(now, random_.randrange(1, 3)):
                book.accept(question, _answer(random_, question), now, DATE)
        few = random_.choice((None, 1, 2))
        book.settle(now, few)
        while book.behind:
            book.settle(now, few)
        yield now, wanted


def _differs(seed: int, book: DnsBook) -> bool:
    """Return whether a random history leads to another state than settling all services after each step."""
    forced: dict[ServiceKey, GuardedValue[Slices]] = {}
    for now, wanted in _history(seed, book):
        forced = {
            key: settled(item, book.known, forced.get(key, GuardedValue(())), now, HOLD)
            for key, item in wanted.items()
        }
        expected = Picture(
            {
                found_slice.key: found_slice.sourced()
                for guarded_value in forced.values()
                for found_slice in guarded_value.in_force
            }
        )
        answer = ordered(p for key, item in wanted.items() for p in problems(item, book.known, forced[key]))
        counted = [counts(item, book.known) for item in wanted.values()]
        good = sum(item.good for item in counted)
        if (book.objects, book.problems(), book.counts().good) != (expected, answer, good):
            return True
    return False


@given(st.integers(0, 2**32))
@settings(max_examples=examples(12, fresh=240), deadline=None)
def test_settling_changed_services_equals_settling_all_services(seed: int) -> None:
    """Services are added, changed and removed, answers arrive or fail, and time passes."""
    assert not _differs(seed, DnsBook(PACING, HOLD))


@given(st.integers(0, 2**32))
@settings(max_examples=examples(10), deadline=None)
def test_restart_keeps_all_slices_in_force(seed: int) -> None:
    """This holds at any moment of a history, even if all questions fail after the restart."""
    for now, wanted in _history(seed, before := DnsBook(PACING, HOLD)):
        after = DnsBook(PACING, HOLD, read(written(before.kept())))
        after.follow(instead(wanted.values()))
        after.settle(now)
        assert after.objects == before.objects
        for question in after.due(now, 99):
            after.accept(question, DnsFailure("SERVFAIL"), now, DATE)
        after.settle(now + HOLD)
        assert after.objects == before.objects


def test_book_that_updates_only_one_service_is_detected() -> None:
    """Negative control of the comparison above."""
    assert any(_differs(seed, _OneServiceBook(PACING, HOLD)) for seed in range(50))


@pytest.mark.parametrize("count", [10, 100])
def test_answer_settles_only_the_services_that_asked(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of an answer is independent of the number of other services."""
    looked: list[ServiceKey] = []

    def counted(item: Service, *rest: object) -> object:
        looked.append(item.key)
        return settled(item, *rest)  # type: ignore[arg-type]  # passed on as they came

    book = _book(*(service(f"s{number}", DnsName(f"s{number}.test")) for number in range(count)))
    monkeypatch.setattr("meshwright.providers.dns.book.settled", counted)
    book.accept(Question("s1.test", RecordType.A), FOUND, NOW, DATE)
    book.settle(NOW)
    assert [str(key) for key in looked] == ["shop/s1"]
