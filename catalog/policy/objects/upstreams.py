"""UpstreamPolicies: the one in force for a service, and how its endpoints are called.

A policy counts for a service of its own namespace, for all callers. Of several the oldest is in force
(`metadata.creationTimestamp`; those without one last), then the first by name. The answering service counts:
a split's backend, not the apex. A preference for near endpoints depends on the caller's locality (`nearby`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from catalog.policy.values.destinations import CallerLocality, Destination, ServiceDestination
from catalog.policy.values.proxy import ReachableServices
from catalog.policy.values.route_actions import WeightedBackend
from catalog.store.own_policies import upstream_policies_by_service
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.upstreams import HashKey, UpstreamPolicy, prefix
from meshwright.mesh.service import Protocol, ServiceKey
from meshwright.mesh.values.cached_hash import SharedTuple


def precedence(policy: UpstreamPolicy) -> tuple[bool, str, PolicyKey]:
    """Return the sort key of an UpstreamPolicy for one service."""
    return (not policy.created, policy.created, policy.key)


def policy_of(view: View, key: ServiceKey) -> UpstreamPolicy | None:
    """Return the UpstreamPolicy that applies to a service, or `None`."""
    return min(upstream_policies_by_service(view).lookup(key), key=precedence, default=None)


def keys_of(view: View, protocol: Protocol, backends: Iterable[WeightedBackend]) -> tuple[HashKey, ...]:
    """Return the keys of a request by which endpoints are chosen, over all possible backends, in their order.

    A proxy makes one hash of all keys of a route. Ports without HTTP have no keys.
    """
    if not protocol.is_http:
        return ()
    result = dict.fromkeys(policy.load.key for policy in _policies(view, backends))
    return tuple(key for key in result if key is not None)


def fails_over(view: View, protocol: Protocol, backends: Iterable[WeightedBackend]) -> bool:
    """Return whether a failed request may be repeated at endpoints farther away, for at least one backend."""
    if not protocol.is_http:
        return False
    nearest = (policy.nearest for policy in _policies(view, backends))
    return any(preference is not None and preference.fails_over for preference in nearest)


@derived
def nearby(view: View, part: ReachableServices, locality: str) -> ReachableServices:
    """Return reachable services as seen from a locality; the value is shared by all callers there.

    A destination without a preference, or for callers with an unknown locality, is unchanged.
    """
    result = tuple(_near(view, destination, locality) for destination in part.destinations)
    # The same object, so localities without a difference share the part and everything made from it.
    if all(mine is its for mine, its in zip(result, part.destinations, strict=True)):
        return part
    return ReachableServices(part.services, SharedTuple(result), part.common)


def _policies(view: View, backends: Iterable[WeightedBackend]) -> Iterator[UpstreamPolicy]:
    """Yield the UpstreamPolicies of the backends for which the proxy chooses an endpoint."""
    for backend in backends:
        policy = policy_of(view, backend.upstream) if isinstance(backend.upstream, ServiceKey) else None
        if policy is not None and not backend.as_called:
            yield policy


def _near(view: View, result: Destination, locality: str) -> Destination:
    if not isinstance(result, ServiceDestination) or result.as_called:
        return result
    policy = policy_of(view, result.service)
    wanted = policy.nearest if policy is not None else None
    if wanted is None or not (place := prefix(locality, wanted.within)):
        return result
    return replace(result, near=CallerLocality(place, wanted.within, fails_over=wanted.fails_over))
