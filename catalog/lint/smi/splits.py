"""Problems of TrafficSplits: what refuses one, who gets no share, and who takes precedence."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import Final

from catalog.lint.budget import Budget, within
from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.smi.match_coverage import MatchIndex
from catalog.lint.templates import answering
from catalog.lint.wording import Place
from catalog.policy.access import may_call
from catalog.policy.objects import splits
from catalog.policy.outbound import protocol_of
from catalog.relations.permissive import is_permissive
from catalog.store.smi import http_route_groups, splits_by_apex, targets_by_destination
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import TRAFFIC_SPLIT
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey, TrafficSplit
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.service import Protocol, ServiceKey

_NAMED: Final = 5
"""Clients that a problem names; of more it gives the number."""


def problems(lint: Lint, split: TrafficSplit) -> Iterator[Problem]:
    """Yield the problems of a TrafficSplit."""
    place = Place(lint.view, ObjectKey.of(TRAFFIC_SPLIT, split.key))
    yield from _backends(place, split)
    refusals = list(_refusals(place, split))
    yield from refusals
    if not refusals:
        yield from _ports(place, split)
        yield from _overruled(place, split)
        yield from _shadowed(place, split)
        looked_for = "backends that clients may not call"
        yield from within(place, "spec.backends", looked_for, partial(_not_allowed, lint, place, split))


def _backends(place: Place, split: TrafficSplit) -> Iterator[Problem]:
    for number, backend in enumerate(split.backends):
        key = ServiceKey(split.key.namespace, backend.service)
        if key not in place.view.services:
            field = f"spec.backends[{number}].service"
            wanted = f"Service {key} does not exist; it gets no share until it does"
            yield place.error(Code.UNKNOWN_BACKEND, field, backend.service, wanted)


def _refusals(place: Place, split: TrafficSplit) -> Iterator[Problem]:
    view = place.view
    if split.apex not in view.services or split.apex.namespace != split.key.namespace:
        wanted = f"must be a Service of namespace {split.key.namespace}; the split is not in force"
        yield place.error(Code.UNKNOWN_APEX, "spec.service", str(split.apex), wanted)
    total = sum(splits.known_weights(view, split).values())
    if total <= 0:
        wanted = "an existing backend with a weight above 0; the split is not in force"
        yield place.error(Code.ZERO_WEIGHTS, "spec.backends", "", wanted)
    if total > splits.GREATEST_TOTAL_WEIGHT:
        wanted = f"weights that add up to at most {splits.GREATEST_TOTAL_WEIGHT}; the split is not in force"
        yield place.error(Code.EXCESSIVE_WEIGHTS, "spec.backends", str(total), wanted)
    if splits.matches(view, split) == ():
        known = [
            name for name in split.matches if PolicyKey(split.key.namespace, name) in http_route_groups(view)
        ]
        named = ", ".join(sorted(set(split.matches) - set(known)) or sorted(known))
        wanted = f"HTTPRouteGroups of namespace {split.key.namespace} with matches; the split is not in force"
        yield place.error(Code.UNKNOWN_SPLIT_MATCH, "spec.matches", named, wanted)


def _ports(place: Place, split: TrafficSplit) -> Iterator[Problem]:
    apex = place.view.services[split.apex]
    for key in splits.known_weights(place.view, split):
        for port in apex.ports:
            if splits.backend_port(port, place.view.services[key]) is None:
                wanted = (
                    f"needs a port {port.port} as {apex.key} has; without it the backend gets no share there"
                )
                yield place.error(Code.BACKEND_PORT, "spec.backends", str(key), wanted)


def _overruled(place: Place, split: TrafficSplit) -> Iterator[Problem]:
    if split.matches:
        return
    rivals = [
        each
        for each in splits_by_apex(place.view).found(split.apex)
        if not each.matches and not splits.refused(place.view, each)
    ]
    winner = min(rivals, key=splits.precedence)
    if winner.key != split.key:
        wanted = f"TrafficSplit {winner.key} has the same apex and is older or first by name; it counts"
        yield place.error(Code.OVERRULED_SPLIT, "spec.service", str(split.apex), wanted)


def _shadowed(place: Place, split: TrafficSplit) -> Iterator[Problem]:
    mine = splits.matches(place.view, split)
    earlier = [
        match
        for each in splits_by_apex(place.view).found(split.apex)
        if splits.precedence(each) < splits.precedence(split) and not splits.refused(place.view, each)
        for match in splits.matches(place.view, each) or ()
    ]
    covering = MatchIndex((match.name, match) for match in earlier)

    def shadowed(budget: Budget) -> Iterator[Problem]:
        if mine and all(covering.first(match, budget) is not None for match in mine):
            wanted = "splits on the same apex that are older or first by name take all of its requests"
            yield place.warning(Code.SHADOWED_SPLIT, "spec.matches", ", ".join(split.matches), wanted)

    yield from within(place, "spec.matches", "splits that take all of its requests", shadowed)


def _not_allowed(lint: Lint, place: Place, split: TrafficSplit, budget: Budget) -> Iterator[Problem]:
    """Yield the backends that clients of the apex or of other backends may not call: no share of theirs.

    A client that may call none of a split's backends has nobody left for the calls that the split decides.
    """
    view = place.view
    if is_permissive(view, split.key.namespace):
        return
    callers = {key: _callers(lint, key, budget) for key in _with_share(view, split)}
    reached = frozenset().union(*callers.values())
    in_force = splits.in_force(view, split.apex, Protocol.HTTP)
    rivals = {key for each in in_force for key in _with_share(view, each)}
    others = sorted({split.apex, *rivals} - callers.keys())
    everyone = reached.union(*(_callers(lint, key, budget) for key in others))
    lost = everyone - reached
    fail = f", and the calls of {_named(lost)} that this split decides fail" if lost else ""
    for key, allowed in callers.items():
        budget.spend(len(everyone))
        if missing := everyone - allowed:
            who = f"{_named(missing)} may call the apex or another backend of it, and not this one"
            wanted = f"{who}; it gets no share of theirs{fail}"
            yield place.warning(Code.BACKEND_NOT_ALLOWED, "spec.backends", str(key), wanted)


def _named(clients: Collection[ServiceIdentity]) -> str:
    first = sorted(clients)[:_NAMED]
    more = f" and {len(clients) - len(first)} more" if len(clients) > len(first) else ""
    return ", ".join(map(str, first)) + more


def _with_share(view: View, split: TrafficSplit) -> tuple[ServiceKey, ...]:
    """Return the backends that a split gives a share to."""
    return tuple(key for key, weight in splits.known_weights(view, split).items() if weight > 0)


def _callers(lint: Lint, key: ServiceKey, budget: Budget) -> frozenset[ServiceIdentity]:
    """Return who may call any port of a service at all; of whom answers, pods to come count as well."""
    view = lint.view
    places = {
        (identity, number, protocol_of(view, key, port))
        for port in view.services[key].ports
        for identity, number in answering(lint, key, port)
    }
    found: set[ServiceIdentity] = set()
    for identity, number, protocol in sorted(places):
        for target in targets_by_destination(view).found(identity):
            budget.spend(1 + len(target.sources))
            found.update(each for each in target.sources if may_call(view, each, identity, number, protocol))
    return frozenset(found)
