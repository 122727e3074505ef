"""Renewal of listeners, so that clients close connections that narrower rules no longer permit.

A client applies a new route configuration to the next request. Open requests continue, and an upgraded
connection (for example a WebSocket) continues as long as both ends want. Only a changed listener makes Envoy
drain its connections. Therefore a listener with a reference to a route configuration with fewer permissions
than before is sent twice: first in an interim form, and after the ACK in the real form. In the end every
client of a group holds the same listener, and wider rules do not close connections.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from xds.protocol.resources.resource import Renewal, Resource
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.type_urls import LISTENER, ROUTE, ResourceName

Renewing = Mapping[ResourceName, frozenset[ResourceName]]
"""Listeners to renew, each with the route configurations that cause it."""

SHARED: Final = 64
"""Number of cached results, for the other streams of a group."""

NOTHING: Final[Renewing] = MappingProxyType({})


def narrowed(before: Snapshot, after: Snapshot) -> frozenset[ResourceName]:
    """Return the names of the route configurations with fewer permissions in `after` than in `before`."""
    old, new = before.resources(ROUTE), after.resources(ROUTE)
    changed = after.changed_since(before).get(ROUTE, frozenset())
    pairs = ((old.get(name), new.get(name)) for name in changed)
    return frozenset(
        route.name for was, route in pairs if was is not None and route is not None and _narrows(was, route)
    )


def referring(
    snapshot: Snapshot, routes: frozenset[ResourceName], listener_names: Iterable[ResourceName]
) -> Renewing:
    """Return the listeners held by the client with a reference to any of these route configurations."""
    listeners = snapshot.resources(LISTENER)
    result = {name: _referred(listeners[name], routes) for name in listener_names if name in listeners}
    return {name: reasons for name, reasons in result.items() if reasons}


def interims(snapshot: Snapshot, renewing: Renewing) -> Mapping[ResourceName, Resource]:
    """Return the interim forms of the listeners to renew."""
    listeners, routes = snapshot.resources(LISTENER), snapshot.resources(ROUTE)
    resources = {}
    for name, reasons in renewing.items():
        makers = (routes[reason].renewal for reason in sorted(reasons) if reason in routes)
        renewal = next((maker for maker in makers if maker is not None), None)
        if renewal is not None and name in listeners:
            resources[name] = _interim(renewal, listeners[name], reasons)
    return resources


@lru_cache(maxsize=SHARED)
def _narrows(before: Resource, after: Resource) -> bool:
    """Return whether a route configuration permits less than before; cached for all streams."""
    return after.renewal is not None and after.renewal.narrows(before, after)


@lru_cache(maxsize=SHARED)
def _interim(renewal: Renewal, listener: Resource, routes: frozenset[ResourceName]) -> Resource:
    """Return the interim form of a listener; cached, so all streams share one encoding."""
    return renewal.interim(listener, routes)


def together(one: Renewing, other: Renewing) -> Renewing:
    """Return the union of two sets of listeners to renew, each with its route configurations."""
    nothing: frozenset[ResourceName] = frozenset()
    return {name: one.get(name, nothing) | other.get(name, nothing) for name in (*one, *other)}


def _referred(listener: Resource, routes: frozenset[ResourceName]) -> frozenset[ResourceName]:
    """Return the given route configurations to which a listener refers; binary search, as lists are long."""
    references = listener.references
    places = {name: bisect_left(references, (ROUTE, name)) for name in routes}
    return frozenset(name for name, at in places.items() if references[at : at + 1] == ((ROUTE, name),))
