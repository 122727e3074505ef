"""Route tables: what happens to the requests of a client to a service's port, in order.

TrafficSplits choose the backends, and the RoutePolicy of the called service treats the requests, whichever
backend they get. An entry therefore stands for one match of a split together with one match of a rule: the
table is the product of both lists. The service itself gets the requests of no split. For example, a split for
`/beta` and a rule for POST make the entries `/beta and POST`, `/beta`, `POST`, and one for the rest.

Where a route of the Gateway API is in force at the port, the routes make the table alone
(`catalog.policy.gateway_routes`), and TrafficSplits and the RoutePolicy have no effect there.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Final

from catalog.policy import gateway_routes
from catalog.policy.objects import routing, splits
from catalog.policy.objects.routing import Place
from catalog.policy.objects.upstreams import fails_over, keys_of
from catalog.policy.outbound import reaches
from catalog.policy.values.route_actions import (
    NO_BACKEND,
    Forward,
    RequestMirror,
    RouteAction,
    WeightedBackend,
)
from catalog.policy.values.route_table import (
    AppliedRule,
    AppliedSplit,
    RequestTreatment,
    RouteEntry,
    RouteSource,
    RoutingPart,
)
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.permissive import is_permissive
from catalog.relations.route_reach import (
    Side,
    deciding_routes,
    redirects,
    relevant_caller,
    route_places,
    side_of,
)
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.matching import RequestMatch
from meshwright.mesh.policies.routing import RouteActions
from meshwright.mesh.policies.smi import HTTPMatch, TrafficSplit
from meshwright.mesh.service import ServiceKey, ServicePort

REMEMBERED: Final = 4096
"""Number of cached matches, and of combinations: many entries, ports and services have the same ones."""


_Sources = tuple[tuple[RouteSource, ...], ...]
"""The provenance of each match of an object; an entry joins those of several objects."""


@dataclass(frozen=True, slots=True)
class _RuleEffect:
    """Effect of a rule on the requests of its sources, made once for the entries of all choices."""

    rule: AppliedRule
    sources: _Sources
    treatment: RequestTreatment | None


@dataclass(frozen=True, slots=True)
class _Choice:
    """The backends for requests of any of `matches` (None: all requests), chosen by `split`, if any."""

    shares: tuple[WeightedBackend, ...]
    split: AppliedSplit | None = None
    matches: tuple[HTTPMatch, ...] | None = None


def table(
    view: View, client: ServiceIdentity | None, key: ServiceKey, port: ServicePort
) -> tuple[RouteEntry, ...]:
    """Return the route table of a client's calls to a service's port; empty if it may reach no backend.

    Without a client: the table of every client that no consumer route concerns.
    """
    side = None if client is None else side_of(view, key, client.namespace)
    asked = relevant_caller(view, client, key, side)
    return table_where(view, key, port, partial(reaches, view, asked), side)


def table_where(
    view: View,
    key: ServiceKey,
    port: ServicePort,
    reached: Callable[[Place], bool],
    side: Side = None,
    *,
    as_called: bool = False,
) -> tuple[RouteEntry, ...]:
    """Return the table if the places in `reached` may be called. Only places behind the service are asked.

    `side` selects the callers (see `catalog.relations.route_reach`). With `as_called`, requests that no split
    takes go to the called endpoint.
    """
    if routes := deciding_routes(view, key, port.port, side):
        shown = (
            is_permissive(view, key.namespace)
            or redirects(view, key, port.port, side)
            or any(map(reached, ((key, port), *route_places(view, key, port, side))))
        )
        return gateway_routes.entries(view, (key, port), routes, reached) if shown else ()
    protocol = protocol_of(view, key, port)
    rules = [
        _RuleEffect(rule, _sources(rule, rule.matches), _treatment(rule.actions))
        for rule in routing.rules(view, key, port, protocol, reached)
    ]
    result: list[RouteEntry] = []
    for choice in _choices(view, key, port, reached, as_called=as_called):
        action: RouteAction = NO_BACKEND
        if choice.shares:
            action = Forward(
                choice.shares,
                keys_of(view, protocol, choice.shares),
                fails_over(view, protocol, choice.shares),
            )
        result.extend(_entries(choice, action, rules))
    return tuple(result) if any(entry.shares for entry in result) else ()


def _choices(
    view: View, key: ServiceKey, port: ServicePort, reached: Callable[[Place], bool], *, as_called: bool
) -> Iterator[_Choice]:
    """Yield the splits in order, then the service itself, unless a split takes all requests."""
    for split in splits.in_force(view, key, protocol_of(view, key, port)):
        shares, matches = _shares(view, split, port, reached), splits.matches(view, split)
        yield _Choice(shares, AppliedSplit(split.key, shares), matches)
        if matches is None:
            return
    yield _Choice(_itself(view, key, port, reached, as_called=as_called))


def _entries(choice: _Choice, action: RouteAction, rules: Sequence[_RuleEffect]) -> Iterator[RouteEntry]:
    """Yield the entries of a choice: for each rule, then for the requests of no rule."""
    chosen = _sources(choice.split, choice.matches)
    for effect in rules:
        treated = _treated(action, effect.rule)
        for split, rule in product(chosen, effect.sources):
            yield _entry(split + rule, treated, effect.treatment)
        # The rule is for all requests, so none are left.
        if effect.rule.matches is None:
            return
    for provenance in chosen:
        yield _entry(provenance, action)


def _sources(part: RoutingPart | None, matches: tuple[HTTPMatch, ...] | None) -> _Sources:
    """Return the provenance of each match, or of all requests; an empty one without a part."""
    if part is None:
        return ((),)
    if matches is None:
        return ((RouteSource(part),),)
    return tuple((RouteSource(part, match),) for match in matches)


def _entry(
    provenance: tuple[RouteSource, ...], action: RouteAction, treatment: RequestTreatment | None = None
) -> RouteEntry:
    named = tuple([source.match for source in provenance if source.match is not None])
    # A split and a rule may name the same match.
    if len(named) > 1 and named[0] == named[1]:
        named = named[:1]
    return RouteEntry(_request_matches(named), action, provenance, treatment)


@lru_cache(REMEMBERED)
def _request_matches(named: tuple[HTTPMatch, ...]) -> tuple[RequestMatch, ...]:
    return tuple(map(_request_match, named))


@lru_cache(REMEMBERED)
def _request_match(match: HTTPMatch) -> RequestMatch:
    return match.request_match


def _treated(action: RouteAction, rule: AppliedRule) -> RouteAction:
    """Return an action with what a rule changes of forwarding; an answer stays."""
    if not isinstance(action, Forward):
        return action
    backend, wanted = rule.mirror, rule.actions.mirror
    mirrors = (RequestMirror(backend, wanted.percent),) if backend is not None and wanted is not None else ()
    return Forward(action.shares, action.keys, action.fails_over, rule.actions.timeout, mirrors)


def _treatment(actions: RouteActions) -> RequestTreatment | None:
    treatment = RequestTreatment(
        actions.request_headers, actions.response_headers, actions.delay, actions.abort
    )
    return None if treatment == RequestTreatment() else treatment


@derived
def places_behind(view: View, key: ServiceKey, side: Side) -> tuple[Place, ...]:
    """Return the places to which calls of a side may lead: the service's own, and backends of its routes."""
    result: dict[Place, None] = {}
    for port in view.services[key].ports:
        result[key, port] = None
        if deciding_routes(view, key, port.port, side):
            result.update(dict.fromkeys(route_places(view, key, port, side)))
            continue
        for split in splits.in_force(view, key, protocol_of(view, key, port)):
            result.update((place, None) for place, _ in _backends(view, split, port))
        result.update((place, None) for place in routing.mirrors(view, key, port))
    return tuple(result)


def _itself(
    view: View, key: ServiceKey, port: ServicePort, reached: Callable[[Place], bool], *, as_called: bool
) -> tuple[WeightedBackend, ...]:
    # In a permissive namespace a service without workloads is visible as well, and answers 503.
    shown = is_permissive(view, key.namespace) or reached((key, port))
    return (WeightedBackend(key, port.target, 1, as_called),) if shown else ()


def _shares(
    view: View, split: TrafficSplit, port: ServicePort, reached: Callable[[Place], bool]
) -> tuple[WeightedBackend, ...]:
    """Return the shares of a split that a client may call; empty if all their weights are zero."""
    shares = tuple(
        WeightedBackend(place[0], place[1].target, weight)
        for place, weight in _backends(view, split, port)
        if reached(place)
    )
    return shares if any(share.weight for share in shares) else ()


def _backends(view: View, split: TrafficSplit, port: ServicePort) -> Iterator[tuple[Place, int]]:
    """Yield the places of a split's backends for a port of its apex, with their weights."""
    for key, weight in splits.known_weights(view, split).items():
        backend_port = splits.backend_port(port, view.services[key])
        if backend_port is not None:
            yield (key, backend_port), weight
