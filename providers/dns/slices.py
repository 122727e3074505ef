"""From answers to endpoint slices: functions of services, what is known of their names, and the time."""

from collections.abc import Iterable, Mapping
from datetime import UTC, timedelta

from mesh.kinds import SERVICE
from mesh.names import IpAddress
from mesh.objects import EndpointSlice, ObjectKey
from mesh.origins import FromSource
from mesh.problems import Problem, Severity
from mesh.service import DnsName, Service, ServiceKey
from providers.contract import Counts
from providers.dns.records import Question, QuestionState, RecordType, Target
from providers.dns.schedule import questions_of
from providers.guard import Guarded, guard
from providers.moments import Moment
from specs.codes import Code

Known = Mapping[Question, QuestionState]
Ports = tuple[tuple[str, int], ...]
Slices = tuple[EndpointSlice, ...]


def slices(service: Service, known: Known) -> Slices:
    """Return the slices of a service by its names' last good answers, sorted; none is without address.

    Names without a port of their own share the slice `<service>-dns`; each other port has a slice
    `<service>-dns-<port>`.
    """
    own = tuple((port.name, port.target_port) for port in service.ports if isinstance(port.target_port, int))
    found: dict[str, tuple[Ports, set[IpAddress]]] = {}
    for name in service.dns_names:
        for port, addresses in _reached(name, known):
            suffix = "-dns" if port is None else f"-dns-{port}"
            ports: Ports = own if port is None else tuple((each.name, port) for each in service.ports[:1])
            found.setdefault(suffix, (ports, set()))[1].update(addresses)
    key = service.key
    return tuple(
        EndpointSlice(key.name, key.namespace, f"{key.name}{suffix}", tuple(sorted(addresses)), ports)
        for suffix, (ports, addresses) in sorted(found.items())
        if addresses
    )


def _reached(name: DnsName, known: Known) -> list[tuple[int | None, set[IpAddress]]]:
    """Return the addresses of a name by port; None is for the service's own ports."""
    if not name.srv:
        return [(name.port, _addresses(name.name, known))]
    state = known.get(Question(name.name, RecordType.SRV))
    targets = state.targets if state is not None else ()
    return [(target.port, _addresses(target.name, known)) for target in _preferred(targets, known)]


def _preferred(targets: Iterable[Target], known: Known) -> list[Target]:
    """Return the targets of the best priority of which any has an address (RFC 2782: others are for need)."""
    found = [target for target in targets if _addresses(target.name, known)]
    best = min((target.priority for target in found), default=None)
    return [target for target in found if target.priority == best]


def _addresses(host: str, known: Known) -> set[IpAddress]:
    states = (known.get(Question(host, record)) for record in (RecordType.A, RecordType.AAAA))
    return {address for state in states if state is not None for address in state.addresses}


def settled(
    service: Service, known: Known, before: Guarded[Slices], now: Moment, wait: timedelta
) -> Guarded[Slices]:
    """Return what is in force for a service.

    It keeps what it has as long as nothing is known and not every question has a good answer.
    """
    return guard(before, _answer(service, known), now, wait)


def _answer(service: Service, known: Known) -> Slices | None:
    found = slices(service, known)
    asked = (question for name in service.dns_names for question in questions_of(name, known))
    certain = all(question in known and not known[question].error for question in asked)
    return found if found or certain else None


def problems(service: Service, known: Known, forced: Guarded[Slices]) -> tuple[Problem, ...]:
    """Return the names of a service that cannot be resolved, and whether its emptiness is held back."""
    found = [_held(service.key)] if forced.held_since is not None else []
    for name in service.dns_names:
        failing = sorted(each for each in questions_of(name, known) if each in known and known[each].error)
        if failing:
            found.append(_unresolved(service.key, name, failing, known))
    return tuple(found)


def counts(service: Service, known: Known) -> Counts:
    """Count the names of a service: answered, answered from memory, failing without ever an answer."""
    good = stale = refused = 0
    for name in service.dns_names:
        states = [known.get(each) for each in questions_of(name, known)]
        if not any(each is not None and each.error for each in states):
            good += all(each is not None for each in states)
        elif any(each is not None and each.answered is not None for each in states):
            stale += 1
        else:
            refused += 1
    return Counts(good, stale, refused)


def _unresolved(key: ServiceKey, name: DnsName, failing: list[Question], known: Known) -> Problem:
    answered = [each for each in (known[question].answered for question in failing) if each is not None]
    kept = len(answered) == len(failing)
    severity = Severity.WARNING if kept else Severity.ERROR
    reasons = ", ".join(f"{each}: {known[each].error}" for each in failing)
    stays = (
        f"the last good answer, of {min(answered).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}, stays in force"
        if kept
        else "there is no answer to go by"
    )
    expected = f"must be resolved; {stays} ({reasons})"
    return _problem(Code.UNRESOLVED, severity, key, "dns", name.name, expected)


def _held(key: ServiceKey) -> Problem:
    expected = (
        "has no address in the DNS any more; the last ones are kept for empty_answer_hold_seconds, "
        "in case that is a mistake"
    )
    return _problem(Code.EMPTY_HELD, Severity.WARNING, key, "", "", expected)


def _problem(
    code: Code, severity: Severity, key: ServiceKey, field: str, value: str, expected: str
) -> Problem:
    service = ObjectKey.of(SERVICE, key)
    return Problem(
        code=str(code),
        severity=severity,
        origin=FromSource("dns"),
        key=service,
        field=field,
        value=value,
        expected=expected,
    )
