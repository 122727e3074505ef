"""Route entries of Gateway API routes at a Service's port, or at a gateway's.

The matches of all rules of all routes are ordered together (`objects.gateway_precedence`), and each makes one
entry. A request that fits no entry is answered with 404, so the entries need not fit all requests.

A share never moves to other backends:

| backend | answer to its share |
|---|---|
| missing, or with an unknown filter | 500; for gRPC 503, which is UNAVAILABLE for its clients |
| its BackendTLSPolicy cannot verify certificates | the same |
| the client may not call it | 403 |
| without endpoints | 503, by the caller's proxy |
| weight 0 | none |
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from catalog.policy.backend_tls import is_broken, policy_at_edge
from catalog.policy.objects.gateway_precedence import RoutedMatch, by_age, ordered
from catalog.policy.objects.routing import Place
from catalog.policy.objects.upstreams import fails_over, keys_of
from catalog.policy.outbound import is_vacant
from catalog.policy.values.route_actions import (
    Answer,
    AnsweredShare,
    Forward,
    HttpVersion,
    RequestMirror,
    RouteAction,
    Share,
    ShareChanges,
    WeightedBackend,
)
from catalog.policy.values.route_table import AppliedRoute, RequestTreatment, RouteEntry, RouteSource
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.references import resolved_rules, resolved_rules_at_gateways
from catalog.relations.verdicts import Resolution, ResolvedBackend, ResolvedRule, ServicePlace
from catalog.store.gateway import route_of
from catalog.store.view import View
from meshwright.mesh.gateway.filters import Filters, Redirect
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.gateway.rules import Backend, Rule
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE, TLS_ROUTE, Kind
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import Protocol, ServicePort

_PORTS: Final = {"http": Port(80), "https": Port(443)}
"""Ports of schemes, for redirects."""


_NO_RULES: Final = RouteEntry((), Answer(HTTPStatus.NOT_FOUND))
"""The table of routes without rules: an empty one would stand for a Service without permitted calls."""

_Effect = tuple[RouteAction, RequestTreatment | None]


@dataclass(frozen=True, slots=True)
class _Caller:
    """The called port with its protocol, and the places that the clients may call.

    With `is_gateway` it is the port of a gateway.
    """

    view: View
    port: Port
    protocol: Protocol
    reached: Callable[[Place], bool]
    is_gateway: bool = False

    @property
    def has_requests(self) -> bool:
        """True if the called port has requests, and not only connections."""
        return self.protocol.is_http


def _broken(kind: Kind) -> int:
    """Return the status of requests for a backend that does not exist."""
    return HTTPStatus.SERVICE_UNAVAILABLE if kind == GRPC_ROUTE else HTTPStatus.INTERNAL_SERVER_ERROR


def entries(
    view: View, called: Place, routes: tuple[ObjectKey, ...], reached: Callable[[Place], bool]
) -> tuple[RouteEntry, ...]:
    """Return the entries of the routes in force at a called port, which are all of one kind.

    Clients may call the places in `reached`.
    """
    caller = _Caller(view, called[1].port, protocol_of(view, *called), reached)
    found = [route for key in routes if (route := route_of(view, key)) is not None]
    if caller.has_requests:
        return tuple(_requests(caller, ordered(found))) or (_NO_RULES,)
    return tuple(_connections(caller, by_age(found)))


def edge_entries(
    view: View, port: Port, routes: Iterable[GatewayRoute], reached: Callable[[Place], bool]
) -> tuple[RouteEntry, ...]:
    """Return the entries for requests at a gateway's port, of routes with the same host name.

    GRPCRoutes decide before HTTPRoutes: their matches are only for gRPC calls, and therefore narrower.
    """
    caller, found = _Caller(view, port, Protocol.HTTP, reached, is_gateway=True), tuple(routes)
    return tuple(
        entry
        for kind in (GRPC_ROUTE, HTTP_ROUTE)
        for entry in _requests(caller, ordered(route for route in found if route.kind == kind))
    )


def edge_connections(
    view: View, port: Port, routes: Iterable[GatewayRoute], reached: Callable[[Place], bool]
) -> RouteEntry | None:
    """Return the entry for all connections at a gateway's port: the one of the oldest route, or None."""
    caller = _Caller(view, port, Protocol.TCP, reached, is_gateway=True)
    oldest = next(iter(by_age(routes)), None)
    return None if oldest is None else replace(_entry(oldest, _effect(caller, oldest)), matches=())


def _requests(caller: _Caller, in_order: Iterable[RoutedMatch]) -> Iterator[RouteEntry]:
    """Yield the entries of requests. All matches of a rule share what happens, which is found out once."""
    effects: dict[tuple[PolicyKey, int], _Effect] = {}
    for item in in_order:
        place = item.route.key, item.rule
        if (effect := effects.get(place)) is None:
            effect = effects[place] = _effect(caller, item)
        yield _entry(item, effect)


def _connections(caller: _Caller, oldest_first: Iterable[RoutedMatch]) -> Iterator[RouteEntry]:
    """Yield the entries of connections: the oldest route gets those for which no older one asks.

    A hostname precedes a route without hostnames of any age, because it is more specific.
    """
    taken: set[str] = set()
    every: RoutedMatch | None = None
    for item in oldest_first:
        if item.route.kind != TLS_ROUTE or not item.route.hostnames:
            every = every or item
            continue
        names = tuple(name for name in item.route.hostnames if name not in taken)
        taken.update(names)
        if names:
            yield replace(_entry(item, _effect(caller, item)), matches=(), server_names=names)
    if every is not None:
        yield replace(_entry(every, _effect(caller, every)), matches=())


def _entry(item: RoutedMatch, effect: _Effect) -> RouteEntry:
    part = AppliedRoute(item.route.kind, item.route.key, item.rule, item.rule_value, item.match)
    action, treatment = effect
    return RouteEntry((item.request_match,), action, (RouteSource(part),), treatment)


def _effect(caller: _Caller, item: RoutedMatch) -> _Effect:
    """Return what happens to requests of a rule."""
    rule, key = item.rule_value, ObjectKey.from_name(item.route.kind, item.route.key)
    resolve = resolved_rules_at_gateways if caller.is_gateway else resolved_rules
    resolved = resolve(caller.view, key)[item.rule]
    if resolved.unknown:
        # Without the other filters too, so that preflight requests are not permitted.
        return Answer(_broken(item.route.kind)), None
    return _action(caller, item.route.kind, rule, resolved), _treatment(rule.filters)


def _treatment(filters: Filters) -> RequestTreatment | None:
    treatment = RequestTreatment(filters.request_headers, filters.response_headers, cors=filters.cors)
    return None if treatment == RequestTreatment() else treatment


def _action(caller: _Caller, kind: Kind, rule: Rule, resolved: ResolvedRule) -> RouteAction:
    if rule.filters.redirect is not None:
        return _redirect(rule.filters.redirect, caller.port)
    shares = tuple(_shares(caller, kind, rule, resolved))
    if not any(share.weight for share in shares):
        return Answer(_broken(kind))
    backends = tuple(share for share in shares if isinstance(share, WeightedBackend))
    statuses = {share.status for share in shares if isinstance(share, AnsweredShare)}
    # One answer for all requests needs no random choice between shares.
    if not any(backend.weight for backend in backends) and len(statuses) == 1:
        return Answer(statuses.pop())
    return Forward(
        shares,
        keys_of(caller.view, caller.protocol, backends),
        fails_over(caller.view, caller.protocol, backends),
        timeout=rule.timeouts.request or None,
        mirrors=_mirrors(caller, kind, rule.filters, resolved.mirrors),
        rewrite=rule.filters.rewrite,
        retries=rule.retry,
        per_try=rule.timeouts.backend_request or None,
    )


def _redirect(redirect: Redirect, called: Port) -> Redirect:
    """Return a redirect with its port: the given one, else the scheme's, else the called one."""
    port = redirect.port or _PORTS.get(redirect.scheme or "") or called
    return replace(redirect, port=port)


def _shares(caller: _Caller, kind: Kind, rule: Rule, resolved: ResolvedRule) -> Iterator[Share]:
    """Yield the shares of a rule; an answered share needs a weight, and so does a share of connections."""
    for backend, found in zip(rule.backends, resolved.backends, strict=True):
        share = _share(caller, kind, backend, found)
        if share.weight or (caller.has_requests and isinstance(share, WeightedBackend)):
            yield share


def _share(caller: _Caller, kind: Kind, backend: Backend, found: ResolvedBackend) -> Share:
    if not isinstance(found.to, ServicePlace):
        return AnsweredShare(_broken(kind), backend.weight)
    place = found.to.service, found.to.port
    # A Service without workloads has none that could refuse: its share gets 503, as with any empty Service.
    if not caller.reached(place) and not is_vacant(caller.view, place):
        return AnsweredShare(HTTPStatus.FORBIDDEN, backend.weight)
    policy = policy_at_edge(caller.view, place) if caller.is_gateway else None
    if policy is not None and is_broken(caller.view, policy):
        return AnsweredShare(_broken(kind), backend.weight)
    changes = ShareChanges(
        backend.filters.request_headers,
        backend.filters.response_headers,
        backend.filters.rewrite,
        _mirrors(caller, kind, backend.filters, found.mirrors),
    )
    own = None if changes == ShareChanges() else changes
    version = _version(kind, place[1]) if caller.is_gateway and caller.has_requests else HttpVersion.CALLERS
    tls = None if policy is None else policy.key
    return WeightedBackend(place[0], place[1].target, backend.weight, own=own, version=version, tls=tls)


def _version(kind: Kind, port: ServicePort) -> HttpVersion:
    """Return the version of HTTP that the application behind a port speaks."""
    is_newer = kind == GRPC_ROUTE or port.http2 or port.protocol is Protocol.GRPC
    return HttpVersion.HTTP2 if is_newer else HttpVersion.HTTP1


def _version_of_copies(caller: _Caller, kind: Kind, port: ServicePort) -> HttpVersion:
    if caller.is_gateway:
        return _version(kind, port)
    # Envoy would send copies by HTTP/1.1, which gRPC does not have. An HTTPRoute may be for gRPC calls too.
    of_calls = kind == GRPC_ROUTE or caller.protocol is Protocol.GRPC
    return HttpVersion.HTTP2 if of_calls else HttpVersion.CALLERS


def _mirrors(
    caller: _Caller, kind: Kind, filters: Filters, resolved: tuple[Resolution, ...]
) -> tuple[RequestMirror, ...]:
    """Return the copies to existing places that the clients may call."""
    return tuple(
        RequestMirror(backend, mirror.numerator, mirror.denominator)
        for mirror, found in zip(filters.mirrors, resolved, strict=True)
        if isinstance(found, ServicePlace) and (backend := _copied(caller, kind, found)) is not None
    )


def _copied(caller: _Caller, kind: Kind, found: ServicePlace) -> WeightedBackend | None:
    """Return the backend of copies; None if they would be refused, or could not be verified."""
    place = found.service, found.port
    policy = policy_at_edge(caller.view, place) if caller.is_gateway else None
    is_refused = policy is not None and is_broken(caller.view, policy)
    if is_refused or not caller.reached(place):
        return None
    version = _version_of_copies(caller, kind, found.port)
    tls = None if policy is None else policy.key
    return WeightedBackend(found.service, found.port.target, 1, version=version, tls=tls)
