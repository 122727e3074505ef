"""Which endpoints of a service are near to whom: what an UpstreamPolicy prefers, where the caller is."""

from dataclasses import replace

from catalog.policy.objects.upstreams import policy_of
from catalog.policy.proxy import Destination, Near, Reachable, ServiceDestination
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.policies.upstreams import prefix
from meshwright.mesh.values.hashing import Shared


@derived
def nearby(view: View, part: Reachable, locality: str) -> Reachable:
    """Return a part of what may be called, as callers of a locality call it; one value for all of them.

    A destination without a preference, or for callers of whom it is not known where they are, is as it was.
    """
    found = tuple(_near(view, each, locality) for each in part.destinations)
    if all(mine is its for mine, its in zip(found, part.destinations, strict=True)):
        return part
    return Reachable(part.services, Shared(found), part.common)


def _near(view: View, found: Destination, locality: str) -> Destination:
    if not isinstance(found, ServiceDestination) or found.as_called:
        return found
    policy = policy_of(view, found.service)
    wanted = policy.nearest if policy is not None else None
    if wanted is None or not (place := prefix(locality, wanted.within)):
        return found
    return replace(found, near=Near(place, wanted.within, fails_over=wanted.fails_over))
