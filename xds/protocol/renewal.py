"""Renewal: how clients are brought to do away with what they opened under rules that are narrower now.

A client that takes over a route configuration judges the next request by it; what is open goes on, an
upgraded connection for as long as its ends want. A listener that changes drains what it had opened. So a
listener that refers to a route configuration which permits less than the one before is sent twice: in an
interim form, and, when the client has acknowledged that, as it is. In the end every client of a group has
the same, whatever it had before, and wider rules end nobody.
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
"""Listeners that are to be renewed, with the route configurations that are the reason."""

SHARED: Final = 64
"""Answers kept for the next stream of a group, which asks the same."""

NOTHING: Final[Renewing] = MappingProxyType({})


def narrowed(before: Snapshot, after: Snapshot) -> frozenset[ResourceName]:
    """Return the route configurations that permit less than they did."""
    old, new = before.resources(ROUTE), after.resources(ROUTE)
    changed = after.changed_since(before).get(ROUTE, frozenset())
    pairs = ((old.get(name), new.get(name)) for name in changed)
    return frozenset(
        route.name for was, route in pairs if was is not None and route is not None and _narrows(was, route)
    )


def referring(snapshot: Snapshot, routes: frozenset[ResourceName], held: Iterable[ResourceName]) -> Renewing:
    """Return which of the listeners that a client holds refer to some of these route configurations."""
    listeners = snapshot.resources(LISTENER)
    found = {name: _referred(listeners[name], routes) for name in held if name in listeners}
    return {name: reasons for name, reasons in found.items() if reasons}


def interims(snapshot: Snapshot, renewing: Renewing) -> Mapping[ResourceName, Resource]:
    """Return the interim form of the listeners that are to be renewed."""
    listeners, routes = snapshot.resources(LISTENER), snapshot.resources(ROUTE)
    found = {}
    for name, reasons in renewing.items():
        makers = (routes[each].renewal for each in sorted(reasons) if each in routes)
        renewal = next((each for each in makers if each is not None), None)
        if renewal is not None and name in listeners:
            found[name] = _interim(renewal, listeners[name], reasons)
    return found


@lru_cache(maxsize=SHARED)
def _narrows(before: Resource, after: Resource) -> bool:
    """Say whether a route configuration narrows: asked by every stream, worked out once."""
    return after.renewal is not None and after.renewal.narrows(before, after)


@lru_cache(maxsize=SHARED)
def _interim(renewal: Renewal, listener: Resource, routes: frozenset[ResourceName]) -> Resource:
    """Return the interim form of a listener: the same resource for all who are sent it, encoded once."""
    return renewal.interim(listener, routes)


def together(one: Renewing, other: Renewing) -> Renewing:
    """Return both."""
    nothing: frozenset[ResourceName] = frozenset()
    return {name: one.get(name, nothing) | other.get(name, nothing) for name in (*one, *other)}


def _referred(listener: Resource, routes: frozenset[ResourceName]) -> frozenset[ResourceName]:
    """Return those of some route configurations that a listener refers to, which may be thousands."""
    references = listener.references
    places = {name: bisect_left(references, (ROUTE, name)) for name in routes}
    return frozenset(name for name, at in places.items() if references[at : at + 1] == ((ROUTE, name),))
