"""Effects of the deciding rule by the text of the specification: what a client, a server and a mirror see.

The oracle decides which rule applies and who answers. Here is the rest: the new location of a redirect,
changed headers and paths, copies, answers to cross-origin requests, retries and timeouts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

from catalog.oracle.decide import LocalReply, Request, arriving, at_server, offered, places
from catalog.oracle.gateway import (
    RoutedRequest,
    RouteMatch,
    Way,
    changed_headers,
    new_path,
    routed,
    sent_by_rule,
)
from catalog.store.view import View
from meshwright.mesh.gateway.filters import Cors, Filters
from meshwright.mesh.gateway.rules import Rule, Timeouts
from meshwright.mesh.policies.routing import HeaderChanges
from tests.differential.routes.cross_origin import (
    allows,
    answer_faults,
    denied_faults,
    is_preflight,
    preflight_faults,
)
from tests.differential.servers import DELAYED, FAIL, GIVEN, NUMBER, Arrival
from tests.differential.topology import is_http
from tests.differential.wire import Answered

_COMPARED: Final = ("host", "x-tag", "x-other", "x-set")
_GATEWAY_TIMEOUT: Final = 504
_PERMITTING: Final = (200, 204)
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Outcome:
    """Outcome of a request that a server admits: the server's status, or that of the sidecar (0: none).

    `tries` is None if it is not known how many there are. With `may_pass` the server may also answer with
    200, because a copy may arrive first and take a failing or slow try.
    """

    status: int = 200
    local: int = 0
    tries: int | None = 1
    may_pass: bool = False


def outcome_of(asked: Request, rule: Rule | None) -> Outcome:
    """Return the outcome of a request that a server admits; without a rule it has one try and no limit."""
    given = {name.lower(): value for name, value in asked.headers}
    retry, limits = (None, Timeouts()) if rule is None else (rule.retry, rule.timeouts)
    attempts, codes = (0, ()) if retry is None else (retry.attempts, retry.codes)
    if FAIL in given:
        status, times = map(int, given[FAIL].split())
        retried = min(times, attempts) if status in codes else 0
        return Outcome(status if retried < times else 200, tries=retried + 1)
    if DELAYED not in given:
        return Outcome()
    times = int(given[DELAYED])
    if limits.backend_request:
        retried = min(times, attempts) if _GATEWAY_TIMEOUT in codes else 0
        return Outcome(local=_GATEWAY_TIMEOUT if retried < times else 0, tries=retried + 1)
    return Outcome(local=_GATEWAY_TIMEOUT if limits.request else 0)


@dataclass(frozen=True)
class RuleEffect:
    """The deciding rule of a request to a port with requests.

    `arrived` is the form of the request at the client's sidecar.
    """

    view: View
    asked: Request
    arrived: Request
    found: RouteMatch
    routed: RoutedRequest

    @classmethod
    def of(cls, view: View, asked: Request) -> Self | None:
        """Return the rule that decides a request; None if none does, or the client has no listener."""
        service = view.services.get(asked.service)
        port = service.port(asked.port) if service is not None else None
        arrived = arriving(view, asked)
        if port is None or isinstance(arrived, LocalReply) or not is_http(asked.port):
            return None
        result = routed(view, arrived, port)
        if result is None or result.found is None or not offered(view, arrived, port):
            return None
        return cls(view, asked, arrived, result.found, result)

    @property
    def rule(self) -> Rule:
        """The deciding rule."""
        return self.found.rule_value

    @property
    def names(self) -> Iterator[str]:
        """Yield the names of what the rule does with the request, for counts."""
        filters, own = self.rule.filters, [backend.filters for backend in self.rule.backends]
        given = {name.lower() for name, _ in self.asked.headers}
        changed = (filters.request_headers, filters.response_headers)
        yield from (
            name
            for name, holds in (
                ("redirect", filters.redirect is not None),
                ("rewrite", filters.rewrite is not None or any(item.rewrite is not None for item in own)),
                ("headers", any(item != HeaderChanges() for item in changed)),
                ("filter of a backend", any(item != Filters() for item in own)),
                ("copies", self.has_copies),
                ("cross-origin", self.cors is not None and "origin" in given),
                ("failing server", self.rule.retry is not None and FAIL in given),
                ("slow server", DELAYED in given),
                ("broken share", self.routed.broken is not None),
                ("unknown filter", bool(filters.unknown)),
            )
            if holds
        )

    @property
    def sent_by_rule(self) -> Request:
        """The request with the changes of the rule, without those of a backend."""
        port = self.view.services[self.asked.service].port(self.asked.port)
        assert port is not None
        return sent_by_rule(self.view, self.arrived, port)

    @property
    def has_copies(self) -> bool:
        """True if some requests of the rule are copied."""
        return bool(self.rule.filters.mirrors) or any(item.filters.mirrors for item in self.rule.backends)

    @property
    def cors(self) -> Cors | None:
        """The filter for cross-origin requests; a filter that is not carried out precedes it."""
        return None if self.rule.filters.unknown else self.rule.filters.cors

    @property
    def grants_preflight(self) -> bool:
        """True if the client's sidecar answers the request with a permission."""
        return self.cors is not None and is_preflight(self.arrived) and allows(self.cors, self.arrived)

    @property
    def denies_preflight(self) -> bool:
        """True if the client's sidecar may answer the request without a permission."""
        return self.cors is not None and is_preflight(self.arrived) and not self.grants_preflight

    @property
    def outcome(self) -> Outcome:
        """The outcome of the request if a server admits it; copies also count as tries of a server."""
        outcome = outcome_of(self.asked, self.rule)
        return replace(outcome, tries=None, may_pass=True) if self.has_copies else outcome

    def faults(self, seen: Answered, arrivals: list[Arrival], *, allowed: bool) -> Iterator[str]:
        """Yield what is wrong in an answer, or in what arrived at the server that gave it.

        `allowed` is True if every server admits the request, so that a retry reaches one that does.
        """
        filters = self.rule.filters
        if filters.redirect is not None and not filters.unknown:
            yield from self._location_faults(seen)
        if self.cors is not None and self.grants_preflight:
            if seen.status in _PERMITTING:
                yield from preflight_faults(self.cors, self.arrived, seen)
        elif self.cors is not None and self.denies_preflight:
            yield from denied_faults(seen)
        elif self.cors is not None and seen.by:
            yield from answer_faults(self.cors, self.arrived, seen)
        if seen.by:
            yield from self._server_faults(seen, arrivals)
        tries, is_preflight_answer = self.outcome.tries, self.grants_preflight or self.denies_preflight
        if allowed and tries not in (None, len(arrivals)) and not is_preflight_answer:
            yield f"{len(arrivals)} tries arrived, and should be {tries}"

    def _location_faults(self, seen: Answered) -> Iterator[str]:
        wanted, location = tuple(self._locations()), seen.value("location")
        if location not in wanted:
            yield f"the location is {location}, and should be {' or '.join(wanted)}"

    def _locations(self) -> Iterator[str]:
        """Yield the new location; a default port may be written where the request's host has a port."""
        redirect = self.rule.filters.redirect
        assert redirect is not None
        scheme = redirect.scheme or "http"
        asked = next(value for name, value in self.arrived.headers if name.lower() == "host")
        name, colon, _ = asked.partition(":")
        port = redirect.port or _PORTS.get(redirect.scheme or "", self.asked.port)
        path, mark, query = self.arrived.path.partition("?")
        if redirect.path is not None:
            path = new_path(path, self.found.request_match, redirect.path)
        rest = path + mark + query
        host = redirect.host or name
        if port == _PORTS[scheme]:
            yield f"{scheme}://{host}{rest}"
        if port != _PORTS[scheme] or (colon and redirect.host is None):
            yield f"{scheme}://{host}:{port}{rest}"

    def _server_faults(self, seen: Answered, arrivals: list[Arrival]) -> Iterator[str]:
        ways = [way for way in self.routed.ways if way.weight and seen.by in accounts_of(self.view, way)]
        own = [arrival for arrival in arrivals if arrival.by == seen.by]
        wanted = [self._arrival(way) for way in ways]
        if not any(_shown(arrival) in wanted for arrival in own):
            yield f"{list(map(_shown, own))} arrived, and should be one of {wanted}"
        answers = [_changed_answer(self.rule.filters, way.own) for way in ways]
        names = sorted({name for answer in answers for name in answer} | {"x-app", "x-kept", "x-backend"})
        given = {name: value for name in names if (value := seen.value(name)) is not None}
        if given not in answers:
            yield f"the headers of the answer are {given}, and should be one of {answers}"

    def _arrival(self, way: Way) -> dict[str, str]:
        """Return the path and compared headers of a request when it reaches a server."""
        place = next(iter(places(self.view, way.service, way.port)))
        there = at_server(self.view, way.request, place)
        assert not isinstance(there, LocalReply), there
        return _selected(there.path, there.headers)


def numbered(request: Request, number: int) -> Request:
    """Return a request with another number, by which its arrivals are known from those of its repetitions."""
    headers = tuple(
        (name, f"{value}.{number}" if name == NUMBER else value) for name, value in request.headers
    )
    return replace(request, headers=headers)


def plain(request: Request) -> Request:
    """Return a request without what controls servers, so that it is answered at once."""
    controls = (NUMBER, FAIL, DELAYED)
    return replace(request, headers=tuple(item for item in request.headers if item[0] not in controls))


def number_of(request: Request) -> str:
    """Return the number of a request; empty without one."""
    return next((value for name, value in request.headers if name == NUMBER), "")


def accounts_of(view: View, way: Way) -> set[str]:
    """Return the ServiceAccounts of the servers behind a share."""
    return {str(place.identity.service_account) for place, _ in places(view, way.service, way.port)}


def _shown(arrival: Arrival) -> dict[str, str]:
    return _selected(arrival.target.decode("latin-1"), arrival.headers)


def _selected(path: str, headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    result = {"path": path}
    for name in _COMPARED:
        values = [value for given, value in headers if given.lower() == name]
        if values:
            result[name] = ",".join(values)
    return result


def _changed_answer(rule: Filters, backend: Filters) -> dict[str, str]:
    headers = changed_headers(changed_headers(GIVEN, rule.response_headers), backend.response_headers)
    names = dict.fromkeys(name for name, _ in headers)
    return {name: ",".join(value for given, value in headers if given == name) for name in names}
