"""EndpointSlices from DNS answers: pure functions of services, states and the time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Final

from meshwright.mesh.kinds import ENDPOINT_SLICE, SERVICE
from meshwright.mesh.names import IpAddress
from meshwright.mesh.objects import EndpointSlice, ObjectKey, SourcedObject
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Problems, Severity
from meshwright.mesh.service import DnsName, Service, ServiceKey
from meshwright.providers.contract import Counts
from meshwright.providers.dns.records import Question, QuestionState, RecordType, Target
from meshwright.providers.dns.schedule import questions_of
from meshwright.providers.guard import GuardedValue, guard
from meshwright.providers.moments import Moment
from meshwright.specs.codes import Code

NAME: Final = "dns"
"""Name of the source."""

Known = Mapping[Question, QuestionState]
Ports = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class FoundSlice:
    """A slice, with the DNS names and nameservers of its addresses, for example `db.test at 10.0.0.2`."""

    value: EndpointSlice
    said: str

    @property
    def key(self) -> ObjectKey:
        """The object key of the slice."""
        return ObjectKey.from_name(ENDPOINT_SLICE, self.value)

    def sourced(self) -> SourcedObject:
        """Return the slice as an object of the source `dns`."""
        return SourcedObject(self.key, self.value, FromSource(NAME, self.said))


Slices = tuple[FoundSlice, ...]


def slices(service: Service, known: Known) -> Slices:
    """Return the slices of a service from the last good answers, sorted, each with at least one address.

    Names without a port of their own share the slice `<service>-dns`; each other port has a slice
    `<service>-dns-<port>`, for example `db-dns-5432`.
    """
    own = tuple((port.name, port.target_port) for port in service.ports if isinstance(port.target_port, int))
    result: dict[str, tuple[Ports, set[IpAddress], set[str]]] = {}
    for name in service.dns_names:
        for port, addresses in _reached(name, known):
            suffix = "-dns" if port is None else f"-dns-{port}"
            ports: Ports = (
                own
                if port is None
                else tuple((inbound_port.name, port) for inbound_port in service.ports[:1])
            )
            _, there, answer = result.setdefault(suffix, (ports, set(), set()))
            there.update(addresses)
            if addresses:
                answer.add(_name_text(name, known))
    key = service.key
    return tuple(
        FoundSlice(
            EndpointSlice(key.name, key.namespace, f"{key.name}{suffix}", tuple(sorted(addresses)), ports),
            ", ".join(sorted(answer)),
        )
        for suffix, (ports, addresses, answer) in sorted(result.items())
        if addresses
    )


def _name_text(name: DnsName, known: Known) -> str:
    """Return a name with its nameservers, such as `db.test at 10.0.0.2`; the name alone if none is known."""
    records = (RecordType.SRV,) if name.srv else (RecordType.A, RecordType.AAAA)
    states = (known.get(Question(name.name, record)) for record in records)
    servers = dict.fromkeys(state.nameserver for state in states if state is not None and state.nameserver)
    return f"{name.name} at {' and '.join(servers)}" if servers else name.name


def _reached(name: DnsName, known: Known) -> list[tuple[int | None, set[IpAddress]]]:
    """Return the addresses of a DNS name by port; the port None means the ports of the Service."""
    if not name.srv:
        return [(name.port, _addresses(name.name, known))]
    state = known.get(Question(name.name, RecordType.SRV))
    targets = state.targets if state is not None else ()
    return [(target.port, _addresses(target.name, known)) for target in _preferred(targets, known)]


def _preferred(targets: Iterable[Target], known: Known) -> list[Target]:
    """Return the targets of the best priority with any address (RFC 2782: other priorities are fallbacks)."""
    result = [target for target in targets if _addresses(target.name, known)]
    best = min((target.priority for target in result), default=None)
    return [target for target in result if target.priority == best]


def _addresses(host: str, known: Known) -> set[IpAddress]:
    states = (known.get(Question(host, record)) for record in (RecordType.A, RecordType.AAAA))
    return {address for state in states if state is not None for address in state.addresses}


def settled(
    service: Service, known: Known, before: GuardedValue[Slices], now: Moment, wait: timedelta
) -> GuardedValue[Slices]:
    """Return the slices in force for a service.

    The previous slices stay while the answers have no address and a question lacks a good answer.
    """
    return guard(before, _answer(service, known), now, wait)


def _answer(service: Service, known: Known) -> Slices | None:
    found_slices = slices(service, known)
    asked = (question for name in service.dns_names for question in questions_of(name, known))
    certain = all(question in known and not known[question].error for question in asked)
    return found_slices if found_slices or certain else None


def problems(service: Service, known: Known, forced: GuardedValue[Slices]) -> Problems:
    """Return a problem for each unresolved name, and one if an empty answer is held back."""
    result = [_hold_problem(service.key)] if forced.held_since is not None else []
    for name in service.dns_names:
        failing = sorted(
            question for question in questions_of(name, known) if question in known and known[question].error
        )
        if failing:
            result.append(_unresolved(service.key, name, failing, known))
    return tuple(result)


def counts(service: Service, known: Known) -> Counts:
    """Return the numbers of a service's DNS names: answered, answered from memory, and never answered."""
    good = stale = refused = 0
    for name in service.dns_names:
        states = [known.get(question) for question in questions_of(name, known)]
        if not any(state is not None and state.error for state in states):
            good += all(state is not None for state in states)
        elif any(state is not None and state.answered is not None for state in states):
            stale += 1
        else:
            refused += 1
    return Counts(good, stale, refused)


def _unresolved(key: ServiceKey, name: DnsName, failing: list[Question], known: Known) -> Problem:
    answered = [moment for moment in (known[question].answered for question in failing) if moment is not None]
    kept = len(answered) == len(failing)
    severity = Severity.WARNING if kept else Severity.ERROR
    reasons = ", ".join(f"{item}: {known[item].error}" for item in failing)
    stays = (
        f"the addresses of the last good answer ({min(answered).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}) stay in "
        "force"
        if kept
        else "without an earlier answer, the name does not have addresses"
    )
    expected = f"the name cannot be resolved; {stays} ({reasons})"
    return _problem(Code.UNRESOLVED, severity, key, "dns", name.name, expected)


def _hold_problem(key: ServiceKey) -> Problem:
    expected = (
        "DNS does not return addresses any more; the last addresses stay in force for "
        "empty_answer_hold_seconds, in case the empty answer is a mistake"
    )
    return _problem(Code.EMPTY_HELD, Severity.WARNING, key, "", "", expected)


def _problem(
    code: Code, severity: Severity, key: ServiceKey, field: str, value: str, expected: str
) -> Problem:
    service = ObjectKey.from_name(SERVICE, key)
    return Problem(
        code=str(code),
        severity=severity,
        origin=FromSource(NAME),
        key=service,
        field=field,
        value=value,
        expected=expected,
    )
