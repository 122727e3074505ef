"""UpstreamPolicies: which is in force for a service, and how its endpoints are reached.

A policy counts for a service of its own namespace, whoever calls. Of several the oldest is in force
(`metadata.creationTimestamp`; those without one last), then the first by name. It is asked of the service
that answers: a split's backend, and not the apex. What it prefers of endpoints that are near depends on where
the caller is (`nearby`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from catalog.policy.values.destinations import CallerLocality, Destination, ServiceDestination
from catalog.policy.values.outbound import WeightedBackend
from catalog.policy.values.proxy import ReachableServices
from catalog.store.own_policies import upstream_policies_by_service
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.upstreams import HashKey, UpstreamPolicy, prefix
from meshwright.mesh.service import Protocol, ServiceKey
from meshwright.mesh.values.cached_hash import SharedTuple


def precedence(policy: UpstreamPolicy) -> tuple[bool, str, PolicyKey]:
    """Return the sort key of an UpstreamPolicy among those of one service."""
    return (not policy.created, policy.created, policy.key)


def policy_of(view: View, key: ServiceKey) -> UpstreamPolicy | None:
    """Return the UpstreamPolicy in force for a service, None where there is none."""
    return min(upstream_policies_by_service(view).found(key), key=precedence, default=None)


def keys_of(view: View, protocol: Protocol, backends: Iterable[WeightedBackend]) -> tuple[HashKey, ...]:
    """Return by which keys of a request endpoints are chosen, of all that may answer it, in their order.

    A proxy makes one hash of all the keys that a route has. Where no request is seen there is none.
    """
    if not protocol.is_http:
        return ()
    found = dict.fromkeys(each.load.key for each in _policies(view, backends))
    return tuple(key for key in found if key is not None)


def fails_over(view: View, protocol: Protocol, backends: Iterable[WeightedBackend]) -> bool:
    """Say whether a request that failed near may be tried again farther away, at some backend's endpoints."""
    if not protocol.is_http:
        return False
    nearest = (each.nearest for each in _policies(view, backends))
    return any(each is not None and each.fails_over for each in nearest)


@derived
def nearby(view: View, part: ReachableServices, locality: str) -> ReachableServices:
    """Return a part of what may be called, as callers of a locality call it; one value for all of them.

    A destination without a preference, or for callers of whom it is not known where they are, is as it was.
    """
    found = tuple(_near(view, each, locality) for each in part.destinations)
    if all(mine is its for mine, its in zip(found, part.destinations, strict=True)):
        return part
    return ReachableServices(part.services, SharedTuple(found), part.common)


def _policies(view: View, backends: Iterable[WeightedBackend]) -> Iterator[UpstreamPolicy]:
    """Yield the policies of backends whose endpoints are chosen among."""
    for each in backends:
        policy = policy_of(view, each.upstream) if isinstance(each.upstream, ServiceKey) else None
        if policy is not None and not each.as_called:
            yield policy


def _near(view: View, found: Destination, locality: str) -> Destination:
    if not isinstance(found, ServiceDestination) or found.as_called:
        return found
    policy = policy_of(view, found.service)
    wanted = policy.nearest if policy is not None else None
    if wanted is None or not (place := prefix(locality, wanted.within)):
        return found
    return replace(found, near=CallerLocality(place, wanted.within, fails_over=wanted.fails_over))
