"""TrafficSplits: which are in force for a service, in which order, and who gets a share.

Precedence on one apex: those with `matches` before those without, then the oldest
(`metadata.creationTimestamp`; those without one last), then by name. The first whose matches fit a request
decides it. Of those without matches only the first is in force. Where no request is seen (TCP), those with
matches do not apply. Splits do not nest: a backend means that service's endpoints.
"""

from typing import Final

from catalog.store.smi import http_route_groups, splits_by_apex
from catalog.store.view import View
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey, TrafficSplit
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePort

GREATEST_TOTAL_WEIGHT: Final = 2**32 - 1
"""Shares are counted in 32 bits by proxies; a split with a greater sum is refused."""


def precedence(split: TrafficSplit) -> tuple[bool, bool, str, PolicyKey]:
    """Return the sort key of a split among those of one apex."""
    return (not split.matches, not split.created, split.created, split.key)


def known_weights(view: View, split: TrafficSplit) -> dict[ServiceKey, int]:
    """Return the weights of the backends that exist, sorted; one named twice has the sum."""
    weights: dict[ServiceKey, int] = {}
    for backend in split.backends:
        key = ServiceKey(split.key.namespace, backend.service)
        if key in view.services:
            weights[key] = weights.get(key, 0) + backend.weight
    return dict(sorted(weights.items()))


def matches(view: View, split: TrafficSplit) -> tuple[HTTPMatch, ...] | None:
    """Return the requests a split is for, None where it is for all; empty where a group is unknown."""
    if not split.matches:
        return None
    groups = [http_route_groups(view).get(PolicyKey(split.key.namespace, name)) for name in split.matches]
    if None in groups:
        return ()
    return tuple(dict.fromkeys(each for group in groups if group is not None for each in group.matches))


def refused(view: View, split: TrafficSplit) -> bool:
    """Say whether a split is out of force as a whole: its apex then stands for itself."""
    total = sum(known_weights(view, split).values())
    return (
        split.apex not in view.services
        or split.apex.namespace != split.key.namespace
        or not 0 < total <= GREATEST_TOTAL_WEIGHT
        or matches(view, split) == ()
    )


def in_force(view: View, apex: ServiceKey, protocol: Protocol) -> tuple[TrafficSplit, ...]:
    """Return the splits that decide calls to a service, in order; at most the last is for all requests."""
    ordered = sorted(
        (each for each in splits_by_apex(view).found(apex) if not refused(view, each)), key=precedence
    )
    specific = [each for each in ordered if each.matches and protocol.is_http]
    general = [each for each in ordered if not each.matches]
    return (*specific, *general[:1])


def backend_port(apex_port: ServicePort, backend: Service) -> ServicePort | None:
    """Return the backend's port that stands for the apex's: the same number, else the same name."""
    same_number = backend.port(apex_port.port)
    if same_number is not None or not apex_port.name:
        return same_number
    return backend.port_named(apex_port.name)
