"""Where a workload's proxy is, for those whom a policy lets prefer what is near."""

from typing import Final

from catalog.store.inventory import slices_by_address
from catalog.store.own import upstream_policies
from catalog.store.view import IN_VIEW, View
from engine.derived import derived
from mesh.workload import Workload


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
    zones = {
        zone
        for each in slices_by_address(view).found((workload.key.namespace, workload.address))
        for address, zone in each.zones
        if address == workload.address
    }
    return f"/{min(zones)}" if zones else ""
