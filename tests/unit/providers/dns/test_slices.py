"""From answers to slices, and what is said of names that do not resolve."""

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
    """Make the service."""
    return Service(KEY, ports, dns_names=names)


def answered(*addresses: str) -> QuestionState:
    """Make an answer of addresses."""
    return QuestionState(NOW, DATE, tuple(map(IpAddress, addresses)))


def failing(*addresses: str) -> QuestionState:
    """Make a question that fails, with its last good answer if addresses are given."""
    good = DATE if addresses else None
    return QuestionState(NOW, good, tuple(map(IpAddress, addresses)), (), 0, 1, "SERVFAIL", DATE)


def both(name: str, *addresses: str) -> dict[Question, QuestionState]:
    """Make the answers to both questions for a name: IPv4 addresses, and nothing."""
    return {Question(name, A): answered(*addresses), Question(name, RecordType.AAAA): answered()}


def cut(suffix: str, ports: tuple[tuple[str, int], ...], *addresses: str, said: str = "a.test") -> FoundSlice:
    """Make a slice of the service, as it was found under names."""
    return FoundSlice(EndpointSlice("db", Namespace("shop"), f"db{suffix}", addresses, ports), said)


def test_names_without_port_share_a_slice_with_the_services_target_ports() -> None:
    """A named target port has no number here, and is left out."""
    found = slices(
        service(DnsName("a.test"), DnsName("b.test"), ports=(HTTP, NAMED)),
        {
            Question("a.test", A): answered("10.0.0.2", "10.0.0.1"),
            Question("a.test", RecordType.AAAA): answered("fd00::1"),
            Question("b.test", A): answered("10.0.0.1", "10.0.0.3"),
        },
    )
    addresses = ("10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1")
    assert found == (cut("-dns", (("http", 8080),), *addresses, said="a.test, b.test"),)


def test_a_name_with_a_port_has_a_slice_of_its_own() -> None:
    """It is matched with the service's one port by that port's name."""
    names = (DnsName("a.test"), DnsName("b.test", Port(5)))
    known = both("a.test", "10.0.0.1") | both("b.test", "10.0.0.2")
    assert slices(service(*names), known) == (
        cut("-dns", (("http", 8080),), "10.0.0.1"),
        cut("-dns-5", (("http", 5),), "10.0.0.2", said="b.test"),
    )


def _served(**addresses: str) -> Slices:
    """Resolve SRV records to main (priority 1, twice) and spare (priority 2), where they have addresses."""
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


def test_srv_records_say_hosts_and_ports() -> None:
    """Those of the best priority that has an address; weights are not carried."""
    name = "_db._tcp.test"
    main = cut("-dns-5", (("http", 5),), "10.0.0.1", said=name)
    more = cut("-dns-6", (("http", 6),), "10.0.0.2", said=name)
    spare = cut("-dns-7", (("http", 7),), "10.0.0.3", said=name)
    assert _served(main="10.0.0.1", more="10.0.0.2", spare="10.0.0.3") == (main, more)
    assert _served(more="10.0.0.2", spare="10.0.0.3") == (more,)
    assert _served(spare="10.0.0.3") == (spare,)
    assert _served() == ()


def test_a_slice_says_under_which_names_and_by_whom_it_was_found() -> None:
    """Those that have addresses; a nameserver is said once, and not at all where nobody remembers it."""
    known = {
        Question("a.test", A): replace(answered("10.0.0.1"), nameserver="10.9.0.1"),
        Question("a.test", RecordType.AAAA): replace(answered("fd00::1"), nameserver="10.9.0.2:5353"),
        Question("b.test", A): answered("10.0.0.2"),
        Question("c.test", A): replace(answered(), nameserver="10.9.0.1"),
    }
    (found,) = slices(service(*map(DnsName, ("c.test", "b.test", "a.test"))), known)
    assert found.said == "a.test at 10.9.0.1 and 10.9.0.2:5353, b.test"


def test_the_order_of_what_is_known_does_not_matter() -> None:
    """The same slices, in the same order."""
    names = (DnsName("a.test"), DnsName("b.test", Port(5)))
    known = both("a.test", "10.0.0.1") | both("b.test", "10.0.0.2")
    backwards = dict(reversed(known.items()))
    assert slices(service(*reversed(names)), backwards) == slices(service(*names), known)


def _forced(
    known: Mapping[Question, QuestionState], before: GuardedValue[Slices], now: Moment = NOW
) -> GuardedValue[Slices]:
    return settled(service(DnsName("a.test")), known, before, now, WAIT)


def test_an_error_never_empties_a_service() -> None:
    """Nor does a question that was not answered yet; nor an empty answer to the other one."""
    held: Slices = (cut("-dns", (("http", 8080),), "10.0.0.1"),)
    before = GuardedValue(held)
    assert _forced({}, before) == before
    assert _forced({Question("a.test", A): failing()}, before) == before
    assert _forced(both("a.test") | {Question("a.test", A): failing()}, before, NOW + WAIT) == before
    assert _forced({Question("a.test", A): failing("10.0.0.1")}, GuardedValue(())) == before


def test_an_empty_answer_is_held_back_and_then_believed() -> None:
    """The negative control: with certain answers the service is emptied, after the wait."""
    held: Slices = (cut("-dns", (("http", 8080),), "10.0.0.1"),)
    waiting = _forced(both("a.test"), GuardedValue(held))
    assert waiting == GuardedValue(held, NOW)
    assert _forced(both("a.test"), waiting, NOW + WAIT) == GuardedValue(())


def test_what_is_wrong_is_said() -> None:
    """A name without any answer is an error, one with an old answer a warning; and what is held back."""
    wanted = service(DnsName("a.test"), DnsName("b.test"), DnsName("c.test"))
    known = (
        both("b.test")
        | both("c.test", "10.0.0.3")
        | {
            Question("a.test", A): failing(),
            Question("b.test", A): failing("10.0.0.1"),
        }
    )
    key = ObjectKey.of(SERVICE, KEY)
    never = (
        "the name cannot be resolved; there is no earlier answer, "
        "so the name has no addresses (a.test A: SERVFAIL)"
    )
    stays = "the addresses of the last good answer (2026-01-02T03:04:05Z) stay in force"
    old = f"the name cannot be resolved; {stays} (b.test A: SERVFAIL)"
    held = (
        "DNS returns no addresses any more; the last addresses stay in force for "
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
