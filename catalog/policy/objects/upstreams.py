"""UpstreamPolicies: which is in force for a service, and how its endpoints are reached.

A policy counts for a service of its own namespace, whoever calls. Of several the oldest is in force
(`metadata.creationTimestamp`; those without one last), then the first by name. It is asked of the service
that answers: a split's backend, and not the apex.
"""

from collections.abc import Iterable, Iterator

from catalog.policy.proxy import WeightedBackend
from catalog.store.own import upstream_policies_by_service
from catalog.store.view import View
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.upstreams import HashKey, UpstreamPolicy
from meshwright.mesh.service import Protocol, ServiceKey


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


def _policies(view: View, backends: Iterable[WeightedBackend]) -> Iterator[UpstreamPolicy]:
    """Yield the policies of backends whose endpoints are chosen among."""
    for each in backends:
        policy = policy_of(view, each.upstream) if isinstance(each.upstream, ServiceKey) else None
        if policy is not None and not each.as_called:
            yield policy
