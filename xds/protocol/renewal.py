"""Renewal of listeners, so that clients close connections that narrower rules no longer permit.

A client applies a new route configuration to the next request. Open requests continue, and an upgraded
connection (for example a WebSocket) continues as long as both ends want. Only a changed listener makes Envoy
drain its connections. Therefore a listener with a reference to a route configuration with fewer permissions
than before is sent twice: first in an interim form, and after the ACK in the real form. In the end every
client of a group holds the same listener, and wider rules do not close connections.

The maker of a route configuration may distinguish kinds of connections, for example with and without TLS.
Then only those that are permitted less are closed.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from xds.protocol.resources.resource import Narrowing, Renewal, Resource
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.type_urls import LISTENER, ROUTE, ResourceName

Renewing = Mapping[ResourceName, frozenset[Narrowing]]
"""Listeners to renew, each with what causes it."""

SHARED: Final = 64
"""Number of cached results, for the other streams of a group."""

NOTHING: Final[Renewing] = MappingProxyType({})


def narrowed(before: Snapshot, after: Snapshot) -> frozenset[Narrowing]:
    """Return the route configurations with fewer permissions in `after` than in `before`, and for whom."""
    old, new = before.resources(ROUTE), after.resources(ROUTE)
    changed = after.changed_since(before).get(ROUTE, frozenset())
    pairs = ((old.get(name), new.get(name)) for name in changed)
    return frozenset(
        (route.name, kind)
        for was, route in pairs
        if was is not None and route is not None
        for kind in _narrows(was, route)
    )


def referring(
    snapshot: Snapshot, narrowings: frozenset[Narrowing], listener_names: Iterable[ResourceName]
) -> Renewing:
    """Return the listeners held by the client with a reference to any of these route configurations."""
    listeners = snapshot.resources(LISTENER)
    result = {name: _referred(listeners[name], narrowings) for name in listener_names if name in listeners}
    return {name: reasons for name, reasons in result.items() if reasons}


def interims(snapshot: Snapshot, renewing: Renewing) -> Mapping[ResourceName, Resource]:
    """Return the interim forms of the listeners to renew."""
    listeners, routes = snapshot.resources(LISTENER), snapshot.resources(ROUTE)
    resources = {}
    for name, reasons in renewing.items():
        makers = (routes[route].renewal for route, _ in sorted(reasons) if route in routes)
        renewal = next((maker for maker in makers if maker is not None), None)
        if renewal is not None and name in listeners:
            resources[name] = _interim(renewal, listeners[name], reasons)
    return resources


@lru_cache(maxsize=SHARED)
def _narrows(before: Resource, after: Resource) -> frozenset[str]:
    """Return the kinds of connections that are permitted less than before; cached for all streams."""
    return frozenset() if after.renewal is None else after.renewal.narrows(before, after)


@lru_cache(maxsize=SHARED)
def _interim(renewal: Renewal, listener: Resource, narrowings: frozenset[Narrowing]) -> Resource:
    """Return the interim form of a listener; cached, so all streams share one encoding."""
    return renewal.interim(listener, narrowings)


def together(one: Renewing, other: Renewing) -> Renewing:
    """Return the union of two sets of listeners to renew, each with what causes it."""
    nothing: frozenset[Narrowing] = frozenset()
    return {name: one.get(name, nothing) | other.get(name, nothing) for name in (*one, *other)}


def _referred(listener: Resource, narrowings: frozenset[Narrowing]) -> frozenset[Narrowing]:
    """Return those of route configurations to which a listener refers; binary search, as lists are long."""
    references = listener.references
    places = {name: bisect_left(references, (ROUTE, name)) for name, _ in narrowings}
    there = {name for name, at in places.items() if references[at : at + 1] == ((ROUTE, name),)}
    return frozenset(narrowing for narrowing in narrowings if narrowing[0] in there)
