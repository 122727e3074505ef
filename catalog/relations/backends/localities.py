"""Where a workload's proxy is, for those whom a policy lets prefer what is near."""

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
def _asked(view: View) -> bool:
    return any(each.nearest is not None for each in upstream_policies(view).values())


_is_asked: Final = IN_VIEW.firewall(_asked)


def locality_of(view: View, workload: Workload) -> str:
    """Return `region/zone/sub-zone` or the beginning of it; empty where it is not known, or nobody asks.

    What the workload says itself counts, else the zone that an EndpointSlice has for its address.
    """
    if not _is_asked(view).value():
        return ""
    if workload.locality:
        return workload.locality
    zones = zones_of(slices_by_address(view).found((workload.key.namespace, workload.address)))
    zone = zones.get(workload.address, "")
    return f"/{zone}" if zone else ""


def zones_of(slices: Iterable[EndpointSlice]) -> Mapping[IpAddress, str]:
    """Return the zones that slices have for addresses.

    Of several for one address that of the slice in which the address is healthiest counts, then the first by
    name: a slice of a former Pod says where that Pod was.
    """
    found: dict[IpAddress, tuple[int, str]] = {}
    for each in slices:
        healths = dict(each.healths)
        for address, zone in each.zones:
            said = (health_rank(healths[address]), zone)
            found[IpAddress(address)] = min(found.get(IpAddress(address), said), said)
    return {address: zone for address, (_, zone) in found.items()}
