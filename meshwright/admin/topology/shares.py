"""Configured shares of the backends behind a called service: of TrafficSplits, or of Gateway API routes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from catalog.policy.objects.splits import in_force, known_weights
from catalog.relations.references import resolved_rules
from catalog.relations.route_reach import attached_routes, services_leading_to
from catalog.relations.verdicts import ServicePlace
from catalog.store.gateway import route_of, routes_by_parent
from catalog.store.smi import splits_by_apex, splits_by_backend
from catalog.store.view import View
from meshwright.admin.topology.names import Name, name_of
from meshwright.mesh.kinds import TRAFFIC_SPLIT
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.service import Protocol, ServiceKey


@dataclass(frozen=True, slots=True)
class Weight:
    """Share of a backend in a TrafficSplit, or in a rule of a route: its part of all weights, from 0 to 1.

    `rule` is the field of the rule, for example `spec.rules[0]`; empty for a TrafficSplit.
    """

    by: ObjectKey
    part: float
    rule: str = ""

    @property
    def split(self) -> str | None:
        """The TrafficSplit as `namespace/name`; None for a route."""
        return f"{self.by.namespace}/{self.by.name}" if self.by.kind == TRAFFIC_SPLIT else None


Shares = Mapping[Name, tuple[Weight, ...]]
"""The shares of each backend behind one service."""


def configured_shares(view: View) -> Iterator[tuple[Name, Shares]]:
    """Yield the services whose calls go to backends, with the shares of the backends.

    Routes of producers and of consumers are all included. A TrafficSplit beside a route has no effect.
    """
    routed = {key for key in routes_by_parent(view) if attached_routes(view, key)}
    for key in sorted(routed):
        yield name_of(key), _of_routes(view, key)
    for key in splits_by_apex(view):
        if key not in routed:
            yield name_of(key), _of_splits(view, key)


def services_before(view: View, backend: ServiceKey) -> frozenset[ServiceKey]:
    """Return the services whose calls may lead to a backend, by TrafficSplits and by routes in force."""
    splits = splits_by_backend(view).lookup(backend)
    return frozenset((*(split.apex for split in splits), *services_leading_to(view, backend)))


def _of_splits(view: View, apex: ServiceKey) -> Shares:
    weights = defaultdict[Name, tuple[Weight, ...]](tuple)
    for split in in_force(view, apex, Protocol.HTTP):
        known = known_weights(view, split)
        for backend, weight in known.items():
            by = ObjectKey.from_name(TRAFFIC_SPLIT, split.key)
            weights[name_of(backend)] += (Weight(by, weight / sum(known.values())),)
    return weights


def _of_routes(view: View, parent: ServiceKey) -> Shares:
    weights = defaultdict[Name, tuple[Weight, ...]](tuple)
    for key in attached_routes(view, parent):
        route = route_of(view, key)
        for number, rule in enumerate(route.rules) if route is not None else ():
            resolved = resolved_rules(view, key)[number]
            total = sum(backend.weight for backend in rule.backends)
            # A dropped rule has no resolved backends, and requests of one with an unknown filter fail.
            if total == 0 or resolved.unknown or not resolved.backends:
                continue
            shares = defaultdict[Name, int](int)
            for backend, found in zip(rule.backends, resolved.backends, strict=True):
                if isinstance(found.to, ServicePlace):
                    shares[name_of(found.to.service)] += backend.weight
            for name, weight in shares.items():
                weights[name] += (Weight(key, weight / total, f"spec.rules[{number}]"),)
    return weights
