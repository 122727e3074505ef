"""Problems of TrafficSplits: reasons for having no effect, backends without a share, and precedence."""

from collections.abc import Iterator
from functools import partial

from catalog.lint.budget import Budget, within
from catalog.lint.callers import callers_of, named_clients
from catalog.lint.codes import Code
from catalog.lint.gateway import out_of_force
from catalog.lint.lint import Lint
from catalog.lint.smi.match_coverage import MatchIndex
from catalog.lint.wording import Place
from catalog.policy.objects import splits
from catalog.relations.permissive import is_permissive
from catalog.store.smi import http_route_groups, splits_by_apex
from catalog.store.view import View
from meshwright.mesh.kinds import TRAFFIC_SPLIT
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey, TrafficSplit
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.service import Protocol, ServiceKey


def problems(lint: Lint, split: TrafficSplit) -> Iterator[Problem]:
    """Yield the problems of a TrafficSplit."""
    place = Place(lint.view, ObjectKey.from_name(TRAFFIC_SPLIT, split.key))
    yield from _backends(place, split)
    refusals = list(_refusals(place, split))
    yield from refusals
    yield from out_of_force.problems(place, "spec.service", split.apex)
    # The other checks read the apex and its rivals, which are certain only for a split in force.
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
            wanted = (
                f"Service {key} does not exist, so it is left out of the split. Create "
                "the Service, or correct the name."
            )
            yield place.error(Code.UNKNOWN_BACKEND, field, backend.service, wanted)


def _refusals(place: Place, split: TrafficSplit) -> Iterator[Problem]:
    view = place.view
    if split.apex not in view.services or split.apex.namespace != split.key.namespace:
        wanted = (
            f"Namespace {split.key.namespace} does not have this Service, so this TrafficSplit is "
            "not in force. Create the Service, or correct the name."
        )
        yield place.error(Code.UNKNOWN_APEX, "spec.service", str(split.apex), wanted)
    total = sum(splits.known_weights(view, split).values())
    if total <= 0:
        wanted = (
            "No existing backend has a weight above 0, so this TrafficSplit is not in force. "
            "Create a backend's Service, or raise a weight."
        )
        yield place.error(Code.ZERO_WEIGHTS, "spec.backends", "", wanted)
    if total > splits.GREATEST_TOTAL_WEIGHT:
        wanted = (
            f"The weights add up to more than {splits.GREATEST_TOTAL_WEIGHT}, so this "
            "TrafficSplit is not in force. Use smaller weights."
        )
        yield place.error(Code.EXCESSIVE_WEIGHTS, "spec.backends", str(total), wanted)
    if splits.matches(view, split) == ():
        known = [
            name for name in split.matches if PolicyKey(split.key.namespace, name) in http_route_groups(view)
        ]
        named = ", ".join(sorted(set(split.matches) - set(known)) or sorted(known))
        wanted = (
            f"Namespace {split.key.namespace} does not have this HTTPRouteGroup, or the group lacks "
            "matches, so this TrafficSplit is not in force. Create the group, add a match, or "
            "correct the name."
        )
        yield place.error(Code.UNKNOWN_SPLIT_MATCH, "spec.matches", named, wanted)


def _ports(place: Place, split: TrafficSplit) -> Iterator[Problem]:
    apex = place.view.services[split.apex]
    for key in splits.known_weights(place.view, split):
        for port in apex.ports:
            if splits.backend_port(port, place.view.services[key]) is None:
                wanted = (
                    f"The backend is left out of calls to port {port.port} of {apex.key}, "
                    "because it does not have this port. Add the port to the backend's Service."
                )
                yield place.error(Code.BACKEND_PORT, "spec.backends", str(key), wanted)


def _overruled(place: Place, split: TrafficSplit) -> Iterator[Problem]:
    if split.matches:
        return
    rivals = [
        traffic_split
        for traffic_split in splits_by_apex(place.view).lookup(split.apex)
        if not traffic_split.matches and not splits.refused(place.view, traffic_split)
    ]
    winner = min(rivals, key=splits.precedence)
    if winner.key != split.key:
        wanted = (
            f"TrafficSplit {winner.key} has the same apex and takes precedence, because it is "
            "older or first by name. Delete one of the two."
        )
        yield place.error(Code.OVERRULED_SPLIT, "spec.service", str(split.apex), wanted)


def _shadowed(place: Place, split: TrafficSplit) -> Iterator[Problem]:
    mine = splits.matches(place.view, split)
    earlier = [
        match
        for traffic_split in splits_by_apex(place.view).lookup(split.apex)
        if splits.precedence(traffic_split) < splits.precedence(split)
        and not splits.refused(place.view, traffic_split)
        for match in splits.matches(place.view, traffic_split) or ()
    ]
    covering = MatchIndex((match.name, match) for match in earlier)

    def shadowed(budget: Budget) -> Iterator[Problem]:
        if mine and all(covering.first(match, budget) is not None for match in mine):
            wanted = (
                "Other TrafficSplits on the same apex decide all of these requests, because "
                "they are older or first by name. Delete this TrafficSplit, or change its "
                "matches."
            )
            yield place.warning(Code.SHADOWED_SPLIT, "spec.matches", ", ".join(split.matches), wanted)

    yield from within(place, "spec.matches", "TrafficSplits that decide all of its requests", shadowed)


def _not_allowed(lint: Lint, place: Place, split: TrafficSplit, budget: Budget) -> Iterator[Problem]:
    """Yield the backends refused for some clients of the apex or of other backends.

    Such a backend is without a share of these calls. Calls of a client without any backend fail.
    """
    view = place.view
    if is_permissive(view, split.key.namespace):
        return
    callers = {key: callers_of(lint, key, budget) for key in _with_share(view, split)}
    reached = frozenset().union(*callers.values())
    in_force = splits.in_force(view, split.apex, Protocol.HTTP)
    rivals = {key for traffic_split in in_force for key in _with_share(view, traffic_split)}
    others = sorted({split.apex, *rivals} - callers.keys())
    everyone = reached.union(*(callers_of(lint, key, budget) for key in others))
    lost = everyone - reached
    fail = f"; calls of {named_clients(lost)} that this TrafficSplit decides fail" if lost else ""
    for key, allowed in callers.items():
        budget.spend(len(everyone))
        if missing := everyone - allowed:
            who = f"{named_clients(missing)} may call the apex or another backend, but not this backend"
            wanted = f"{who}, so it is left out of their calls{fail}. Admit them with a TrafficTarget."
            yield place.warning(Code.BACKEND_NOT_ALLOWED, "spec.backends", str(key), wanted)


def _with_share(view: View, split: TrafficSplit) -> tuple[ServiceKey, ...]:
    """Return the existing backends of a TrafficSplit with a weight above 0."""
    return tuple(key for key, weight in splits.known_weights(view, split).items() if weight > 0)
