"""Tests of endpoint slices from DNS answers, and of the problems of names without an answer."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.objects import EndpointSlice, ObjectKey
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import DnsName, Protocol, Service, ServiceKey, ServicePort
from meshwright.providers.contract import Counts
from meshwright.providers.dns.records import Question, QuestionState, RecordType, Target
from meshwright.providers.dns.slices import FoundSlice, Slices, counts, problems, settled, slices
from meshwright.providers.guard import GuardedValue
from meshwright.providers.moments import Moment

NOW = timedelta(hours=3)
DATE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WAIT = timedelta(seconds=30)
KEY = ServiceKey(Namespace("shop"), ServiceName("db"))
HTTP = ServicePort(Port(80), Port(8080), Protocol.HTTP, "http")
NAMED = ServicePort(Port(90), "main", Protocol.TCP, "tcp")
A, SRV = RecordType.A, RecordType.SRV


def service(*names: DnsName, ports: tuple[ServicePort, ...] = (HTTP,)) -> Service:
    """Create the service."""
    return Service(KEY, ports, dns_names=names)


def answered(*addresses: str) -> QuestionState:
    """Create the state of an answered question."""
    return QuestionState(NOW, DATE, tuple(map(IpAddress, addresses)))


def failing(*addresses: str) -> QuestionState:
    """Create a failing question, with a last good answer if addresses are given."""
    good = DATE if addresses else None
    return QuestionState(NOW, good, tuple(map(IpAddress, addresses)), (), 0, 1, "SERVFAIL", DATE)


def both(name: str, *addresses: str) -> dict[Question, QuestionState]:
    """Create the answers to both questions for a name: the A record, and an empty AAAA answer."""
    return {Question(name, A): answered(*addresses), Question(name, RecordType.AAAA): answered()}


def cut(suffix: str, ports: tuple[tuple[str, int], ...], *addresses: str, said: str = "a.test") -> FoundSlice:
    """Create a slice of the service, with the names it was found under."""
    return FoundSlice(EndpointSlice("db", Namespace("shop"), f"db{suffix}", addresses, ports), said)


def test_names_without_a_port_share_a_slice_with_the_target_ports() -> None:
    """A named target port is left out, because DNS does not give its number."""
    found_slices = slices(
        service(DnsName("a.test"), DnsName("b.test"), ports=(HTTP, NAMED)),
        {
            Question("a.test", A): answered("10.0.0.2", "10.0.0.1"),
            Question("a.test", RecordType.AAAA): answered("fd00::1"),
            Question("b.test", A): answered("10.0.0.1", "10.0.0.3"),
        },
    )
    addresses = ("10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1")
    assert found_slices == (cut("-dns", (("http", 8080),), *addresses, said="a.test, b.test"),)


def test_name_with_a_port_has_its_own_slice() -> None:
    """The slice uses the name of the service's only port."""
    names = (DnsName("a.test"), DnsName("b.test", Port(5)))
    known = both("a.test", "10.0.0.1") | both("b.test", "10.0.0.2")
    assert slices(service(*names), known) == (
        cut("-dns", (("http", 8080),), "10.0.0.1"),
        cut("-dns-5", (("http", 5),), "10.0.0.2", said="b.test"),
    )


def _served(**addresses: str) -> Slices:
    """Resolve SRV records to main and more (priority 1) and spare (priority 2), with the given addresses."""
    targets = (
        Target(1, 10, Port(5), "main.test"),
        Target(1, 90, Port(6), "more.test"),
        Target(2, 0, Port(7), "spare.test"),
    )
    known: dict[Question, QuestionState] = {
        Question("_db._tcp.test", SRV): QuestionState(NOW, DATE, targets=targets)
    }
    for name, address in addresses.items():
        known |= both(f"{name}.test", address)
    return slices(service(DnsName("_db._tcp.test", srv=True)), known)


def test_srv_records_give_hosts_and_ports_of_the_best_priority() -> None:
    """The best priority with an address is used; weights are ignored."""
    name = "_db._tcp.test"
    main = cut("-dns-5", (("http", 5),), "10.0.0.1", said=name)
    more = cut("-dns-6", (("http", 6),), "10.0.0.2", said=name)
    spare = cut("-dns-7", (("http", 7),), "10.0.0.3", said=name)
    assert _served(main="10.0.0.1", more="10.0.0.2", spare="10.0.0.3") == (main, more)
    assert _served(more="10.0.0.2", spare="10.0.0.3") == (more,)
    assert _served(spare="10.0.0.3") == (spare,)
    assert _served() == ()


def test_slice_names_its_dns_names_and_nameservers() -> None:
    """Only names with addresses are listed; an unknown nameserver is left out."""
    known = {
        Question("a.test", A): replace(answered("10.0.0.1"), nameserver="10.9.0.1"),
        Question("a.test", RecordType.AAAA): replace(answered("fd00::1"), nameserver="10.9.0.2:5353"),
        Question("b.test", A): answered("10.0.0.2"),
        Question("c.test", A): replace(answered(), nameserver="10.9.0.1"),
    }
    (found_slice,) = slices(service(*map(DnsName, ("c.test", "b.test", "a.test"))), known)
    assert found_slice.said == "a.test at 10.9.0.1 and 10.9.0.2:5353, b.test"


def test_order_of_names_and_answers_does_not_change_the_slices() -> None:
    """The slices are the same, in the same order."""
    names = (DnsName("a.test"), DnsName("b.test", Port(5)))
    known = both("a.test", "10.0.0.1") | both("b.test", "10.0.0.2")
    backwards = dict(reversed(known.items()))
    assert slices(service(*reversed(names)), backwards) == slices(service(*names), known)


def _forced(
    known: Mapping[Question, QuestionState], before: GuardedValue[Slices], now: Moment = NOW
) -> GuardedValue[Slices]:
    return settled(service(DnsName("a.test")), known, before, now, WAIT)


def test_failure_never_empties_a_service() -> None:
    """An unanswered question, or an empty answer beside a failure, keeps the slices as well."""
    held: Slices = (cut("-dns", (("http", 8080),), "10.0.0.1"),)
    before = GuardedValue(held)
    assert _forced({}, before) == before
    assert _forced({Question("a.test", A): failing()}, before) == before
    assert _forced(both("a.test") | {Question("a.test", A): failing()}, before, NOW + WAIT) == before
    assert _forced({Question("a.test", A): failing("10.0.0.1")}, GuardedValue(())) == before


def test_empty_answer_empties_a_service_after_the_hold() -> None:
    """Negative control: with empty answers to both questions the service loses its addresses."""
    held: Slices = (cut("-dns", (("http", 8080),), "10.0.0.1"),)
    waiting = _forced(both("a.test"), GuardedValue(held))
    assert waiting == GuardedValue(held, NOW)
    assert _forced(both("a.test"), waiting, NOW + WAIT) == GuardedValue(())


def test_failed_names_and_a_held_empty_answer_are_problems() -> None:
    """A name without any answer is an error; an old answer and a held empty answer are warnings."""
    wanted = service(DnsName("a.test"), DnsName("b.test"), DnsName("c.test"))
    known = (
        both("b.test")
        | both("c.test", "10.0.0.3")
        | {
            Question("a.test", A): failing(),
            Question("b.test", A): failing("10.0.0.1"),
        }
    )
    key = ObjectKey.from_name(SERVICE, KEY)
    never = (
        "the name cannot be resolved; without an earlier answer, the name does not have "
        "addresses (a.test A: SERVFAIL)"
    )
    stays = "the addresses of the last good answer (2026-01-02T03:04:05Z) stay in force"
    old = f"the name cannot be resolved; {stays} (b.test A: SERVFAIL)"
    held = (
        "DNS does not return addresses any more; the last addresses stay in force for "
        "empty_answer_hold_seconds, in case the empty answer is a mistake"
    )
    assert problems(wanted, known, GuardedValue((), NOW)) == (
        Problem(code="MW1110", severity=Severity.WARNING, origin=FromSource("dns"), key=key, expected=held),
        Problem(
            code="MW1111",
            severity=Severity.ERROR,
            origin=FromSource("dns"),
            key=key,
            field="dns",
            value="a.test",
            expected=never,
        ),
        Problem(
            code="MW1111",
            severity=Severity.WARNING,
            origin=FromSource("dns"),
            key=key,
            field="dns",
            value="b.test",
            expected=old,
        ),
    )
    assert counts(wanted, known) == Counts(good=1, stale=1, refused=1)
    assert counts(wanted, {}) == Counts()
