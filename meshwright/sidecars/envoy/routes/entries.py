"""Entries of a route table as Envoy routes: match, action, and the treatment of requests.

An entry is one route, or one for each share if the shares differ in more than their cluster. The kinds of
objects behind an entry have no effect here, so a new kind needs no code in this module unless it brings a new
action, match or treatment.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from catalog.policy.values.route_actions import (
    Answer,
    AnsweredShare,
    Forward,
    Share,
    ShareChanges,
    WeightedBackend,
)
from catalog.policy.values.route_table import RequestTreatment, RouteEntry
from meshwright.mesh.gateway.filters import Redirect, Rewrite
from meshwright.mesh.matching import RequestMatch
from meshwright.mesh.policies.routing import HeaderChanges
from meshwright.sidecars.envoy.common_messages import fraction
from meshwright.sidecars.envoy.features import cors, faults
from meshwright.sidecars.envoy.routes import actions
from meshwright.sidecars.envoy.routes.attempts import Attempts
from meshwright.sidecars.envoy.routes.matches import matched_prefix, route_match
from meshwright.sidecars.envoy.routes.redirects import redirects
from meshwright.sidecars.envoy.rules import headers
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.route.v3 import route_components_pb2

_Route = route_components_pb2.Route
_Action = route_components_pb2.RouteAction
_NO_CHANGES: Final = HeaderChanges()


def to_route(name: str, matches: tuple[RequestMatch, ...], action: _Action) -> _Route:
    """Return a route of requests that fit all of `matches`."""
    return _Route(name=name, match=route_match(matches), route=action)


def entry_routes(entry: RouteEntry, name: str, attempts: Attempts) -> Iterator[_Route]:
    """Yield the routes of an entry, in order."""
    if (preflights := cors.preflight_entry(entry)) is not None:
        yield from _routes(preflights, name, attempts)
    yield from _routes(entry, name, attempts)


def _routes(entry: RouteEntry, name: str, attempts: Attempts) -> Iterator[_Route]:
    if (refused := _other_origins(entry, name)) is not None:
        yield refused
    match entry.action:
        case Forward(shares) as forward if any(map(_differs, shares)):
            yield from _by_fraction(entry, forward, name, attempts)
        case Forward() as forward:
            yield _forwarded(entry, forward, entry.backends, name, attempts)
        case Redirect() as wanted:
            for header_matchers, action in redirects(wanted, matched_prefix(entry.matches)):
                route = _Route(name=name, match=route_match(entry.matches), redirect=action)
                route.match.headers.extend(header_matchers)
                yield _treated(route, entry)
        case Answer(status):
            yield _answered(entry, status, name)


def _other_origins(entry: RouteEntry, name: str) -> _Route | None:
    """Return the route for preflight requests of other origins that would be forwarded, or None."""
    allowed = None if entry.treatment is None else entry.treatment.cors
    methods = {method for match in entry.matches for method in match.methods}
    if allowed is None or not isinstance(entry.action, Forward) or methods - {"OPTIONS"}:
        return None
    if (result := cors.refuse_others(route_match(entry.matches), allowed)) is not None:
        result.name = name
    return result


def _differs(share: Share) -> bool:
    """Return whether a share needs a route of its own, because weighted clusters have no field for it."""
    return isinstance(share, AnsweredShare) or share.own is not None


def _by_fraction(entry: RouteEntry, forward: Forward, name: str, attempts: Attempts) -> Iterator[_Route]:
    """Yield a route for each share, in order, each with the fraction of requests up to and with its share.

    Envoy compares all fractions with one random number of the request, so they are cumulative: of weights 20,
    30 and 50 the first route has 20 %, the second 50 %, and the last one the rest.
    """
    chosen = [share for share in forward.shares if share.weight > 0]
    total, passed = sum(share.weight for share in chosen), 0
    for share in chosen:
        passed += share.weight
        if isinstance(share, AnsweredShare):
            route = _answered(entry, share.status, name)
        else:
            route = _forwarded(entry, forward, (share,), name, attempts)
        if passed < total:
            up_to = base_pb2.RuntimeFractionalPercent(default_value=fraction(passed, total))
            route.match.runtime_fraction.CopyFrom(up_to)
        yield route


def _answered(entry: RouteEntry, status: int, name: str) -> _Route:
    answer = route_components_pb2.DirectResponseAction(status=status)
    return _treated(_Route(name=name, match=route_match(entry.matches), direct_response=answer), entry)


def _forwarded(
    entry: RouteEntry,
    forward: Forward,
    backends: tuple[WeightedBackend, ...],
    name: str,
    attempts: Attempts,
) -> _Route:
    """Return the route to some backends, which have no changes of their own, or to one that may have them."""
    own = backends[0].own if len(backends) == 1 else None
    result = to_route(name, entry.matches, actions.to_backends(forward, backends, attempts))
    treatment = entry.treatment
    if own is not None:
        treatment = _both(treatment or RequestTreatment(), own)
        actions.mirror(result.route, own.mirrors)
    if treatment is not None:
        if (host := headers.host(treatment.request_headers)) is not None:
            result.route.host_rewrite_literal = host
        _treat(result, treatment)
    # After the header `host`, because a rewrite of the host is the later change.
    if (rewrite := _last(forward.rewrite, own)) is not None:
        actions.rewrite(result.route, rewrite, matched_prefix(entry.matches))
    return result


def _both(treatment: RequestTreatment, own: ShareChanges) -> RequestTreatment:
    """Return the treatment of an entry followed by the changes of one share.

    Envoy would make the changes of a weighted cluster before those of the route.
    """
    return replace(
        treatment,
        request_headers=treatment.request_headers.followed_by(own.request_headers),
        response_headers=treatment.response_headers.followed_by(own.response_headers),
    )


def _last(of_entry: Rewrite | None, own: ShareChanges | None) -> Rewrite | None:
    """Return the rewrite of a share; the parts that it leaves out are those of the entry."""
    further = None if own is None else own.rewrite
    if of_entry is None or further is None:
        return further or of_entry
    return Rewrite(further.host or of_entry.host, further.path or of_entry.path)


def _treated(route: _Route, entry: RouteEntry) -> _Route:
    if entry.treatment is not None:
        _treat(route, entry.treatment)
    return route


def _treat(result: _Route, treatment: RequestTreatment) -> None:
    if treatment.request_headers != _NO_CHANGES:
        result.request_headers_to_add.extend(headers.to_add(treatment.request_headers))
        result.request_headers_to_remove.extend(headers.to_remove(treatment.request_headers))
    if treatment.response_headers != _NO_CHANGES:
        result.response_headers_to_add.extend(headers.to_add(treatment.response_headers))
        result.response_headers_to_remove.extend(headers.to_remove(treatment.response_headers))
    if treatment.faulty:
        faults.harm(result, treatment)
    if treatment.cors is not None:
        cors.allow(result, treatment.cors)
