"""Locality of a workload's proxy, for policies that prefer near endpoints."""

from collections.abc import Iterable, Mapping
from typing import Final

from catalog.store.inventory import slices_by_address
from catalog.store.own_policies import upstream_policies
from catalog.store.precedence import health_rank
from catalog.store.view import IN_VIEW, View
from meshwright.engine.derived import derived
from meshwright.mesh.names import IpAddress
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.workload import Workload


@derived
def _has_locality_policy(view: View) -> bool:
    return any(upstream_policy.nearest is not None for upstream_policy in upstream_policies(view).values())


# Locality is part of the key of a group. Without a policy for near endpoints it would only split groups.
_is_asked: Final = IN_VIEW.firewall(_has_locality_policy)


def locality_of(view: View, workload: Workload) -> str:
    """Return `region/zone/sub-zone` or a prefix; empty if unknown, or if no policy needs it.

    The workload's own value wins, else the zone of its address in an EndpointSlice. For example: `eu/eu-1`.
    """
    if not _is_asked(view).value():
        return ""
    if workload.locality:
        return workload.locality
    zones = zones_of(slices_by_address(view).lookup((workload.key.namespace, workload.address)))
    zone = zones.get(workload.address, "")
    # An EndpointSlice has a zone without its region.
    return f"/{zone}" if zone else ""


def zones_of(slices: Iterable[EndpointSlice]) -> Mapping[IpAddress, str]:
    """Return the zones of addresses in slices.

    Of several slices with one address the one with its best health wins, then the first by name: a slice of a
    former Pod has the zone of that Pod.
    """
    result: dict[IpAddress, tuple[int, str]] = {}
    for endpoint_slice in slices:
        healths = dict(endpoint_slice.healths)
        for address, zone in endpoint_slice.zones:
            rank = (health_rank(healths[address]), zone)
            result[IpAddress(address)] = min(result.get(IpAddress(address), rank), rank)
    return {address: zone for address, (_, zone) in result.items()}
