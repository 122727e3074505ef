"""Problems of TrafficSplits: what refuses one, who gets no share, and who takes precedence."""

from collections.abc import Iterator
from dataclasses import dataclass

from catalog import splits
from catalog.codes import Code
from catalog.saying import say
from catalog.view import View
from mesh.objects import ObjectKey, Problem, Severity
from mesh.policy import PolicyKey, TrafficSplit
from mesh.service import ServiceKey


def problems(view: View) -> Iterator[Problem]:
    """Yield the problems of every TrafficSplit."""
    for split in view.splits:
        place = _Place(view, ObjectKey("TrafficSplit", split.key.namespace, split.key.name))
        yield from _backends(place, split)
        refusals = list(_refusals(place, split))
        yield from refusals
        if not refusals:
            yield from _ports(place, split)
            yield from _overruled(place, split)


@dataclass(frozen=True, slots=True)
class _Place:
    view: View
    key: ObjectKey

    def error(self, code: Code, field: str, value: str, expected: str) -> Problem:
        return say(self.view, self.key, code, Severity.ERROR, field, value, expected)


def _backends(place: _Place, split: TrafficSplit) -> Iterator[Problem]:
    for number, backend in enumerate(split.backends):
        key = ServiceKey(split.key.namespace, backend.service)
        if key not in place.view.services:
            field = f"spec.backends[{number}].service"
            wanted = f"Service {key} does not exist; it gets no share until it does"
            yield place.error(Code.UNKNOWN_BACKEND, field, backend.service, wanted)


def _refusals(place: _Place, split: TrafficSplit) -> Iterator[Problem]:
    view = place.view
    if split.apex not in view.services or split.apex.namespace != split.key.namespace:
        wanted = f"a Service of namespace {split.key.namespace}; the split is not in force"
        yield place.error(Code.UNKNOWN_APEX, "spec.service", str(split.apex), wanted)
    total = sum(splits.known_weights(view, split).values())
    if total <= 0:
        wanted = "an existing backend with a weight above 0; the split is not in force"
        yield place.error(Code.ZERO_WEIGHTS, "spec.backends", "", wanted)
    if total > splits.GREATEST_TOTAL_WEIGHT:
        wanted = f"weights that add up to at most {splits.GREATEST_TOTAL_WEIGHT}; the split is not in force"
        yield place.error(Code.EXCESSIVE_WEIGHTS, "spec.backends", str(total), wanted)
    if splits.matches(view, split) == ():
        known = [name for name in split.matches if PolicyKey(split.key.namespace, name) in view.http_groups]
        named = ", ".join(sorted(set(split.matches) - set(known)) or sorted(known))
        wanted = f"HTTPRouteGroups of namespace {split.key.namespace} with matches; the split is not in force"
        yield place.error(Code.UNKNOWN_SPLIT_MATCH, "spec.matches", named, wanted)


def _ports(place: _Place, split: TrafficSplit) -> Iterator[Problem]:
    apex = place.view.services[split.apex]
    for key in splits.known_weights(place.view, split):
        for port in apex.ports:
            if splits.backend_port(port, place.view.services[key]) is None:
                wanted = f"a port {port.port} as {apex.key} has; without it the backend gets no share there"
                yield place.error(Code.BACKEND_PORT, "spec.backends", str(key), wanted)


def _overruled(place: _Place, split: TrafficSplit) -> Iterator[Problem]:
    if split.matches:
        return
    rivals = [
        each
        for each in place.view.splits_by_apex[split.apex]
        if not each.matches and not splits.refused(place.view, each)
    ]
    winner = min(rivals, key=splits.precedence)
    if winner.key != split.key:
        wanted = f"TrafficSplit {winner.key} has the same apex and is older or first by name; it counts"
        yield place.error(Code.OVERRULED_SPLIT, "spec.service", str(split.apex), wanted)
