"""The oracle: what SMI's text says of one request. It defines what every translation must come to.

Access is allowed if and only if some TrafficTarget has the workload's identity as destination and the
client among its sources, and its rules admit the request. The targets of a destination unite. The rules of
one target, with P the port at which the workload is called:

- HTTPRouteGroups: the request fits one of the matches named (or any of the group's); nothing on TCP ports.
- TCPRoutes: P is among their ports, or one of them names no port.
- both: both must hold; on a TCP port only the second. None: nothing is admitted.

A match holds if its path expression fits the whole path without query, the method is among its methods, and
each header expression fits one value of that header in full; `host` is the authority. A TrafficSplit says
which Services answer instead of its apex; it grants nothing.

Deviations from the SMI text: a path expression must fit the whole path (SMI anchors only its start), as Open
Service Mesh had it. A TrafficTarget speaks for its own namespace only. A reference to what does not exist
admits nothing. A split's matches see HTTP only. A backend that the client may not call at all gets no share.

The request's path is the one that the server gets: dot segments resolved, no escaped slashes (refused).
"""

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from catalog.endpoints import endpoints
from catalog.ports import spoken
from catalog.view import View
from mesh.identity import ServiceIdentity
from mesh.names import Port
from mesh.policy import Backend, HTTPMatch, PolicyKey, RouteKind, TrafficSplit, TrafficTarget
from mesh.service import ServiceKey, ServicePort


@dataclass(frozen=True, slots=True)
class Request:
    """A call: who, to which service and port, and for HTTP what is asked. Header names in any case."""

    client: ServiceIdentity | None
    service: ServiceKey
    port: Port
    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()


class Answer(enum.StrEnum):
    """What becomes of a request.

    REFUSED: the server says no (403, or a closed connection). UNREACHABLE: the client's sidecar knows
    nobody who might answer. DEPENDS: some of the workloads that may be chosen admit it and some do not.
    """

    ALLOWED = "allowed"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    DEPENDS = "depends"


@dataclass(frozen=True, slots=True)
class Share:
    """A service that may answer, with its weight: whose workloads admit the request, and whose do not."""

    service: ServiceKey
    weight: int
    admitted: tuple[ServiceIdentity, ...]
    refused: tuple[ServiceIdentity, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, the services that share the call, and the objects that decided (kind and key, sorted)."""

    answer: Answer
    shares: tuple[Share, ...] = ()
    because: tuple[tuple[str, PolicyKey], ...] = ()

    @property
    def allowed(self) -> bool:
        """Say whether every workload that may be chosen admits the request."""
        return self.answer is Answer.ALLOWED


def decide(view: View, request: Request) -> Decision:
    """Decide one request; pure, and slow enough to be read."""
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    if port is None:
        return Decision(Answer.UNREACHABLE)
    if request.client is None:
        # No certificate, no call: also in permissive mode.
        return Decision(Answer.REFUSED)
    split = _split(view, request, port)
    shares = tuple(_shares(view, request, port, split))
    chosen = [share for share in shares if share.weight > 0]
    because = {
        ("TrafficTarget", target.key)
        for share in chosen
        for identity in share.admitted
        for target in _targets(view, request.client, identity)
        if not view.config.permissive and _says_yes(view, request, target, share.service, port)
    }
    if split is not None:
        because.add(("TrafficSplit", split.key))
    return Decision(_answer(chosen), shares if chosen else (), tuple(sorted(because)))


def fits(match: HTTPMatch, request: Request) -> bool:
    """Say whether a request fits a match."""
    path = request.path.partition("?")[0].partition("#")[0]
    if match.path_regex is not None and not re.fullmatch(match.path_regex, path, re.ASCII):
        return False
    if match.methods and request.method not in match.methods:
        return False
    return all(
        any(re.fullmatch(wanted.regex, value, re.ASCII) for value in _values(request, wanted.name))
        for wanted in match.headers
    )


def _values(request: Request, name: str) -> Iterator[str]:
    wanted = ("host", ":authority") if name.lower() in ("host", ":authority") else (name.lower(),)
    return (value for given, value in request.headers if given.lower() in wanted)


def _answer(chosen: list[Share]) -> Answer:
    admitted = any(share.admitted for share in chosen)
    refused = any(share.refused for share in chosen)
    if not chosen or not (admitted or refused):
        return Answer.UNREACHABLE
    if admitted and refused:
        return Answer.DEPENDS
    return Answer.ALLOWED if admitted else Answer.REFUSED


def _split(view: View, request: Request, port: ServicePort) -> TrafficSplit | None:
    """Return the split that decides: with matches that fit before without, then the oldest, then by name."""
    is_http = _is_http(view, request.service, port)
    fitting: list[tuple[int, int, str, PolicyKey, TrafficSplit]] = []
    for split in view.splits:
        backends = [each for each in split.backends if _service(split, each) in view.services]
        weights = sum(each.weight for each in backends)
        if split.apex != request.service or split.apex.namespace != split.key.namespace:
            continue
        if not 0 < weights < 2**32:
            continue
        groups = [view.http_groups.get(PolicyKey(split.key.namespace, name)) for name in split.matches]
        if split.matches:
            matches = [match for group in groups if group is not None for match in group.matches]
            if None in groups or not is_http or not any(fits(match, request) for match in matches):
                continue
        order = (0 if split.matches else 1, 0 if split.created else 1, split.created, split.key)
        fitting.append((*order, split))
    return min(fitting, key=lambda each: each[:4])[4] if fitting else None


def _shares(view: View, request: Request, port: ServicePort, split: TrafficSplit | None) -> Iterator[Share]:
    if split is None:
        weights = {request.service: 1}
    else:
        weights = {}
        for backend in split.backends:
            key = _service(split, backend)
            weights[key] = weights.get(key, 0) + backend.weight
    for key, weight in sorted(weights.items()):
        their_port = _same_port(view, key, port)
        if their_port is None:
            continue
        answering = sorted(set(_may_answer(view, request, key, their_port)))
        admitted = tuple(each for each in answering if _admits(view, request, each, key, their_port))
        if answering:
            refused = tuple(each for each in answering if each not in admitted)
            yield Share(key, weight, admitted, refused)


def _may_answer(
    view: View, request: Request, key: ServiceKey, port: ServicePort
) -> Iterator[ServiceIdentity]:
    """Yield the identities behind a service that the client may send anything at all to."""
    for endpoint in endpoints(view, key, port):
        identity = endpoint.identity
        if identity is None or request.client is None:
            continue
        is_http = _is_http(view, key, port)
        if view.config.permissive or any(
            _port_admitted(view, target, endpoint.port)
            and (not is_http or _asks_nothing_of_http(target) or any(_matches(view, target)))
            and (is_http or _has(target, RouteKind.TCP))
            for target in _targets(view, request.client, identity)
        ):
            yield identity


def _admits(
    view: View, request: Request, identity: ServiceIdentity, key: ServiceKey, port: ServicePort
) -> bool:
    if view.config.permissive:
        return True
    if request.client is None:
        return False
    return any(
        _says_yes(view, request, target, key, port) for target in _targets(view, request.client, identity)
    )


def _says_yes(
    view: View, request: Request, target: TrafficTarget, key: ServiceKey, port: ServicePort
) -> bool:
    """Say whether one target's rules admit the request at the ports where its destination is called."""
    their_port = _same_port(view, key, port)
    if their_port is None:
        return False
    called_at = {
        each.port for each in endpoints(view, key, their_port) if each.identity == target.destination
    }
    if not called_at or not all(_port_admitted(view, target, each) for each in called_at):
        return False
    if not _is_http(view, key, their_port):
        return _has(target, RouteKind.TCP)
    return _asks_nothing_of_http(target) or any(fits(match, request) for match in _matches(view, target))


def _targets(view: View, client: ServiceIdentity, server: ServiceIdentity) -> Iterator[TrafficTarget]:
    for target in view.targets:
        own = target.key.namespace == target.destination.namespace
        if own and target.destination == server and client in target.sources and target.rules:
            yield target


def _port_admitted(view: View, target: TrafficTarget, port: Port) -> bool:
    if target.port is not None and target.port != port:
        return False
    named = [rule.name for rule in target.rules if rule.kind is RouteKind.TCP]
    routes = [view.tcp_routes.get(PolicyKey(target.key.namespace, name)) for name in named]
    return not named or any(
        route is not None and (not route.ports or port in route.ports) for route in routes
    )


def _has(target: TrafficTarget, kind: RouteKind) -> bool:
    return any(rule.kind is kind for rule in target.rules)


def _asks_nothing_of_http(target: TrafficTarget) -> bool:
    return not _has(target, RouteKind.HTTP)


def _matches(view: View, target: TrafficTarget) -> Iterable[HTTPMatch]:
    for rule in target.rules:
        group = view.http_groups.get(PolicyKey(target.key.namespace, rule.name))
        if rule.kind is not RouteKind.HTTP or group is None:
            continue
        by_name = {match.name: match for match in group.matches}
        if not rule.matches:
            yield from group.matches
        elif all(name in by_name for name in rule.matches):
            yield from (by_name[name] for name in rule.matches)


def _same_port(view: View, key: ServiceKey, port: ServicePort) -> ServicePort | None:
    """Return a service's port with the same number as the one called, else with the same name."""
    service = view.services.get(key)
    if service is None:
        return None
    named = [each for each in service.ports if port.name and each.name == port.name]
    return service.port(port.port) or (named[0] if named else None)


def _service(split: TrafficSplit, backend: Backend) -> ServiceKey:
    return ServiceKey(split.key.namespace, backend.service)


def _is_http(view: View, key: ServiceKey, port: ServicePort) -> bool:
    return spoken(port, view.backing.get(key, ())).is_http
