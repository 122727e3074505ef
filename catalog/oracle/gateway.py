"""Gateway API route of a request: which rule decides, and what it makes of the request; a part of the oracle.

Written from the specification for meshes:

- Accepted routes of the caller's namespace replace those of the Service's namespace at a port.
- Of all matches of these routes that fit, one decides: an exact path, then an expression, then the longest
  prefix; then a given method, more headers, more parameters. For gRPC the longer service, the longer method,
  more headers. Then the older route, the first by `<namespace>/<name>`, the first in the route.
- Connections in TLS are decided by the server name: an exact hostname, then the longest wildcard, then the
  older route as above.
- If no match fits, the answer is 404, and a connection is closed.
- A share keeps its weight: a backend that does not exist gets 500 (503 for gRPC), one that the caller may not
  call 403, one without workloads 503.
- The path and headers are changed before the server judges the request.

Whether a route is accepted is decided in `catalog.relations.attachment`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from catalog.oracle.request.matches import fits_match, fits_with_preflight, name_rank
from catalog.oracle.request.paths import LocalReply
from catalog.oracle.request.request import Request
from catalog.relations.attachment import parent_verdicts
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.workloads import backing
from catalog.store.gateway import route_of, routes_by_parent
from catalog.store.view import View
from meshwright.mesh.gateway.filters import Filters, NewPath, PathForm
from meshwright.mesh.gateway.references import BackendObject
from meshwright.mesh.gateway.routes import GatewayRoute, MatchPlace
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE, SERVICE, TLS_ROUTE
from meshwright.mesh.matching import Exact, GrpcMethod, Prefix, Regex, RequestMatch
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.routing import HeaderChanges
from meshwright.mesh.service import ServiceKey, ServicePort


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """A match of a route that fits a request, with the indexes of the rule and of the match in the rule."""

    key: ObjectKey
    route: GatewayRoute
    rule: int
    match: int

    @property
    def rule_value(self) -> Rule:
        """The rule."""
        return self.route.rules[self.rule]

    @property
    def place(self) -> MatchPlace:
        """The place of the match in the route."""
        return MatchPlace(self.rule, self.match)

    @property
    def request_match(self) -> RequestMatch:
        """The match."""
        return self.rule_value.matches[self.match]

    @property
    def rank(self) -> tuple[Any, ...]:
        """The place of a fitting match among all; the smallest decides."""
        match, route = self.request_match, self.route
        headers = len({field.name for field in match.headers})
        parameters = len({field.name for field in match.parameters})
        age = (0, route.created) if route.created else (1, "")
        last = (age, f"{route.key.namespace}/{route.key.name}", self.rule, self.match)
        if self.key.kind == GRPC_ROUTE:
            method = match.path if isinstance(match.path, GrpcMethod) else GrpcMethod()
            return (-len(method.service or ""), -len(method.method or ""), -headers, 0, 0, *last)
        return (*_path_rank(match), 0 if match.methods else 1, -headers, -parameters, *last)


@dataclass(frozen=True, slots=True)
class Way:
    """A share of a request's calls: the place, and the request in the form in which it leaves the client.

    `own` are the filters of a route's backend, which are already applied to the request.
    """

    service: ServiceKey
    port: ServicePort
    weight: int
    request: Request
    own: Filters = field(default_factory=Filters)


@dataclass(frozen=True, slots=True)
class RoutedRequest:
    """Decision of routes about a request.

    `found` is the deciding match; None if no match fits. `ways` are the shares of the existing backends.
    `reply` is the answer of the client's sidecar to every such request, and `broken` its status for the
    shares of backends that do not exist, if there are any.
    """

    found: RouteMatch | None
    ways: tuple[Way, ...] = ()
    reply: LocalReply | None = None
    broken: int | None = None


def _anything(_: BackendObject) -> bool:
    """Return True: in a mesh a reference to another namespace needs no grant."""
    return True


def _never(_: ServiceKey, __: ServicePort) -> bool:
    """Return False: a sidecar sends no request with TLS of the application."""
    return False


def routed(view: View, request: Request, port: ServicePort) -> RoutedRequest | None:
    """Return what routes make of a request for a port; None if no route decides the client's calls there."""
    if not routes_for(view, request, port):
        return None
    found = match_for(view, request, port)
    if found is None:
        if not _has_requests(view, request, port):
            return RoutedRequest(None, reply=LocalReply(0, "no hostname of the routes fits the server name"))
        why = "no rule of the routes at this port fits the request"
        return RoutedRequest(None, reply=LocalReply(HTTPStatus.NOT_FOUND, why))
    return outcome_of(view, request, found)


def outcome_of(
    view: View,
    request: Request,
    found: RouteMatch,
    may_refer: Callable[[BackendObject], bool] = _anything,
    is_secured: Callable[[ServiceKey, ServicePort], bool] = _never,
) -> RoutedRequest:
    """Return what the deciding match makes of a request; other references than `may_refer` are broken.

    `is_secured` returns whether requests to a port that speaks HTTPS have TLS.
    """
    ways = tuple(_ways(view, request, found, may_refer, is_secured))
    total = sum(backend.weight for backend in found.rule_value.backends)
    missing = total - sum(way.weight for way in ways)
    reply = _reply(found, exists=any(way.weight for way in ways))
    return RoutedRequest(found, ways, reply, _broken(found) if missing and ways else None)


def routes_for(view: View, request: Request, port: ServicePort) -> tuple[ObjectKey, ...]:
    """Return the routes that decide a client's calls to a port; empty if none does."""
    there = [
        key
        for key in routes_by_parent(view).get(request.service, ())
        if any(
            verdict.service == request.service and port.port in verdict.ports
            for verdict in parent_verdicts(view, key)
        )
    ]
    own = [key for key in there if request.identity is not None and key.namespace == _home(request)]
    return tuple(own or [key for key in there if key.namespace == request.service.namespace])


def match_for(view: View, request: Request, port: ServicePort) -> RouteMatch | None:
    """Return the deciding match for a request; None if no match of the deciding routes fits."""
    return next(iter(fitting_matches(view, request, port)), None)


def fitting_matches(view: View, request: Request, port: ServicePort) -> tuple[RouteMatch, ...]:
    """Return the matches of the deciding routes that fit a request; the first decides."""
    there = matches_of(view, routes_for(view, request, port))
    fitting = [item for item in there if _fits(view, item, request, port)]
    return tuple(sorted(fitting, key=lambda item: (_name_rank(item, request), item.rank)))


def sent_by_rule(view: View, request: Request, port: ServicePort) -> Request:
    """Return a request with the changes of the deciding rule, without those of a backend."""
    found = match_for(view, request, port)
    if found is None:
        return request
    return _sent(request, found.request_match, found.rule_value.filters, Filters())


def redirects(view: View, request: Request, port: ServicePort) -> bool:
    """Return whether a rule of the deciding routes redirects requests, whatever their form."""
    routes = (route_of(view, key) for key in routes_for(view, request, port))
    rules = (rule for route in routes if route is not None for rule in route.rules)
    return any(rule.filters.redirect is not None and not rule.dropped for rule in rules)


def places_of_routes(
    view: View, request: Request, port: ServicePort
) -> Iterator[tuple[ServiceKey, ServicePort]]:
    """Yield the places of all backends and mirrors of the deciding routes, whatever the request."""
    for key in routes_for(view, request, port):
        route = route_of(view, key)
        for rule in route.rules if route is not None else ():
            if rule.dropped:
                continue
            mirrors = [*rule.filters.mirrors, *(m for item in rule.backends for m in item.filters.mirrors)]
            named = [(mirror.backend, Filters()) for mirror in mirrors]
            named += [(item.to, item.filters) for item in rule.backends]
            for to, filters in named:
                if (place := place_of(view, key, to, filters)) is not None:
                    yield place


def _reply(found: RouteMatch, *, exists: bool) -> LocalReply | None:
    """Return the client's sidecar's own answer to all requests of a match, or None if backends answer."""
    filters = found.rule_value.filters
    if filters.unknown:
        return LocalReply(_broken(found), "the rule has a filter that is not carried out")
    if filters.redirect is not None:
        return LocalReply(filters.redirect.status, "the rule redirects the request")
    return None if exists else LocalReply(_broken(found), "no backend of the rule exists and has a weight")


def _ways(
    view: View,
    request: Request,
    found: RouteMatch,
    may_refer: Callable[[BackendObject], bool],
    is_secured: Callable[[ServiceKey, ServicePort], bool],
) -> Iterator[Way]:
    rule = found.rule_value
    for backend in rule.backends if not rule.filters.unknown else ():
        if not may_refer(backend.to):
            continue
        if (place := place_of(view, found.key, backend.to, backend.filters, is_secured)) is not None:
            changed = _sent(request, found.request_match, rule.filters, backend.filters)
            yield Way(*place, backend.weight, changed, backend.filters)


def _home(request: Request) -> Namespace | None:
    return None if request.identity is None else request.identity.namespace


def matches_of(view: View, keys: Iterable[ObjectKey]) -> Iterator[RouteMatch]:
    """Yield the matches of all rules in force of some routes."""
    for key in keys:
        route = route_of(view, key)
        for number, rule in enumerate(route.rules) if route is not None else ():
            if route is not None and not rule.dropped:
                yield from (RouteMatch(key, route, number, index) for index in range(len(rule.matches)))


def fits_request(item: RouteMatch, request: Request) -> bool:
    """Return whether a request fits a match, preflight requests for it among them if the rule allows any."""
    filters = item.rule_value.filters
    fits = fits_match if filters.cors is None or filters.unknown else fits_with_preflight
    return fits(item.request_match, request)


def _fits(view: View, item: RouteMatch, request: Request, port: ServicePort) -> bool:
    if (item.key, item.place) in request.missed:
        return False
    if _has_requests(view, request, port):
        return fits_request(item, request)
    # Connections have no requests, so every rule of their routes is for all of them.
    return _name_rank(item, request) is not None


def _has_requests(view: View, request: Request, port: ServicePort) -> bool:
    return spoken(port, backing(view, request.service)).is_http


def _name_rank(item: RouteMatch, request: Request) -> tuple[int, int] | None:
    """Return the rank of a TLSRoute by the server name; equal for all other routes."""
    return name_rank(item.route.hostnames, request.server_name) if item.key.kind == TLS_ROUTE else (0, 0)


def _path_rank(match: RequestMatch) -> tuple[int, int]:
    match match.path:
        case Exact():
            return 0, 0
        case Regex():
            return 1, 0
        case Prefix(text):
            return 2, -len(text)
        case _:
            return 2, -1


def _broken(found: RouteMatch) -> int:
    """Return the status for a backend that does not exist; 0 closes a connection."""
    return {GRPC_ROUTE: 503, HTTP_ROUTE: 500}.get(found.key.kind, 0)


def place_of(
    view: View,
    route: ObjectKey,
    to: BackendObject,
    filters: Filters,
    is_secured: Callable[[ServiceKey, ServicePort], bool] = _never,
) -> tuple[ServiceKey, ServicePort] | None:
    """Return the place of a route's backend or mirror with these filters of its own; None if broken."""
    if to.kind != SERVICE or to.port is None:
        return None
    if filters.unknown or filters.redirect is not None or filters.cors is not None:
        return None
    key = ServiceKey(to.namespace, ServiceName(to.name))
    service = view.services.get(key)
    port = None if service is None else service.port(to.port)
    if port is None:
        return None
    declared = port.protocol_source == "appProtocol"
    of_requests = route.kind in (HTTP_ROUTE, GRPC_ROUTE)
    is_other = of_requests and declared and not port.protocol.is_http
    return None if is_other and not is_secured(key, port) else (key, port)


def _sent(request: Request, match: RequestMatch, rule: Filters, backend: Filters) -> Request:
    """Return a request as the client's sidecar sends it: first the rule's changes, then the backend's."""
    # A backend's rewrite replaces only what it gives: the host, the path, or both.
    rewrites = [change for change in (backend.rewrite, rule.rewrite) if change is not None]
    host = next((change.host for change in rewrites if change.host is not None), None)
    new = next((change.path for change in rewrites if change.path is not None), None)
    if new is not None:
        path, mark, query = request.path.partition("?")
        request = replace(request, path=new_path(path, match, new) + mark + query)
    for changes in (rule.request_headers, backend.request_headers):
        request = replace(request, headers=changed_headers(request.headers, changes))
    if host is not None:
        kept = (item for item in request.headers if item[0].lower() not in ("host", ":authority"))
        request = replace(request, headers=(("host", host), *kept))
    return replace(request, forwarded=True)


def new_path(path: str, match: RequestMatch, new: NewPath) -> str:
    """Return the path after a rewrite or redirect of a request that the match fits."""
    if new.form is PathForm.FULL:
        return new.path or "/"
    prefix = match.path.path if isinstance(match.path, Prefix) else "/"
    rest = path[len(prefix.rstrip("/")) :]
    return new.path.rstrip("/") + rest or "/"


def changed_headers(
    headers: tuple[tuple[str, str], ...], changes: HeaderChanges
) -> tuple[tuple[str, str], ...]:
    """Return headers after the changes of one filter."""
    gone = {*changes.remove, *(name for name, _ in changes.put)}
    kept = (header for header in headers if header[0].lower() not in gone)
    return (*kept, *changes.put, *changes.add)
