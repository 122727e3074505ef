"""TrafficSplits in force for a service, their order, and the shares of their backends.

Precedence on one apex: those with `matches` first, then the oldest (`metadata.creationTimestamp`; those
without one last), then by name. The first split whose matches fit decides a request. Of those without matches
only the first is in force. On TCP ports, which have no visible requests, splits with matches do not apply.
Splits do not nest: a backend means the endpoints of its service. For example, of two splits without matches
for `shop/cart` only the older one counts.
"""

from typing import Final

from catalog.policy.access import once
from catalog.store.smi import http_route_groups, splits_by_apex
from catalog.store.view import View
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey, TrafficSplit
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePort

GREATEST_TOTAL_WEIGHT: Final = 2**32 - 1
"""Maximum sum of weights, because proxies count shares in 32 bits; a split above it is refused."""


def precedence(split: TrafficSplit) -> tuple[bool, bool, str, PolicyKey]:
    """Return the sort key of a TrafficSplit for one apex service."""
    return (not split.matches, not split.created, split.created, split.key)


def known_weights(view: View, split: TrafficSplit) -> dict[ServiceKey, int]:
    """Return the weights of a TrafficSplit's existing backends, sorted; a backend named twice has the sum."""
    weights: dict[ServiceKey, int] = {}
    for backend in split.backends:
        key = ServiceKey(split.key.namespace, backend.service)
        if key in view.services:
            # A Service that is named twice gets the sum, because routes have one share per Service.
            weights[key] = weights.get(key, 0) + backend.weight
    return dict(sorted(weights.items()))


def matches(view: View, split: TrafficSplit) -> tuple[HTTPMatch, ...] | None:
    """Return the requests of a split, `None` for all; empty if a route group is missing."""
    if not split.matches:
        return None
    groups = [http_route_groups(view).get(PolicyKey(split.key.namespace, name)) for name in split.matches]
    # A missing group puts the whole split out of force; fewer matches would change its meaning silently.
    if None in groups:
        return ()
    return once(group.matches for group in groups if group is not None)


def refused(view: View, split: TrafficSplit) -> bool:
    """Return whether a split is not in force at all; calls then go to the apex itself."""
    total = sum(known_weights(view, split).values())
    return (
        split.apex not in view.services
        or split.apex.namespace != split.key.namespace
        or not 0 < total <= GREATEST_TOTAL_WEIGHT
        or matches(view, split) == ()
    )


def in_force(view: View, apex: ServiceKey, protocol: Protocol) -> tuple[TrafficSplit, ...]:
    """Return the splits that decide calls to a service, in order.

    At most the last one is for all requests.
    """
    ordered = sorted(
        (
            traffic_split
            for traffic_split in splits_by_apex(view).lookup(apex)
            if not refused(view, traffic_split)
        ),
        key=precedence,
    )
    specific = [traffic_split for traffic_split in ordered if traffic_split.matches and protocol.is_http]
    general = [traffic_split for traffic_split in ordered if not traffic_split.matches]
    return (*specific, *general[:1])


def backend_port(apex_port: ServicePort, backend: Service) -> ServicePort | None:
    """Return the backend's port that corresponds to the apex's: the same number, else the same name."""
    same_number = backend.port(apex_port.port)
    if same_number is not None or not apex_port.name:
        return same_number
    return backend.port_named(apex_port.name)
