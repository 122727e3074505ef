"""Route entries as the catalog makes them for a service itself, or for a TrafficSplit."""

from catalog.policy.values.route_actions import NO_BACKEND, Forward, WeightedBackend
from catalog.policy.values.route_table import AppliedSplit, RouteEntry, RouteSource
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey


def entry(
    *shares: WeightedBackend, split: PolicyKey | None = None, match: HTTPMatch | None = None
) -> RouteEntry:
    """Return the entry of a service or of its split; without shares, requests get 503."""
    return RouteEntry(
        () if match is None else (match.request_match,),
        Forward(shares) if shares else NO_BACKEND,
        () if split is None else (RouteSource(AppliedSplit(split, shares), match),),
    )
