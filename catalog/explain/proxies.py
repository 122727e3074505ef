"""Names of proxies that no workload will have: whoever dials in by one is held silent, or refused."""

from catalog.store.inventory import by_sidecar, claimant_of
from catalog.store.view import View
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import ProxyUuid
from meshwright.mesh.problems.spelling import COMPARED, nearest
from meshwright.mesh.workload import Workload


def nobody_has(view: View, name: ProxyName) -> str:
    """Return why no workload has a proxy of that name, and which may be meant; empty if one has."""
    holder = claimant_of(view, name.sidecar) or _elsewhere(view, name.uuid)
    if holder is None:
        return f"no workload has the UUID {name.uuid}{_meant(view, name)}"
    if holder.proxy_name == name:
        return ""
    return f"workload {holder.key} has the UUID {name.uuid}, and its proxy is {holder.proxy_name}"


def _elsewhere(view: View, uuid: ProxyUuid) -> Workload | None:
    """Return the first workload of any namespace that has a UUID: whoever asks may have meant its proxy."""
    first = min((each for each in by_sidecar(view) if each.uuid == uuid), default=None)
    return None if first is None else claimant_of(view, first)


def _meant(view: View, name: ProxyName) -> str:
    holders = (claimant_of(view, each) for each in by_sidecar(view))
    there = [each.proxy_name for each in holders if each is not None and each.proxy_name is not None]
    if len(there) > COMPARED:
        # A UUID has no beginning that says where to look; what the name says besides does.
        there = [each for each in there if (each.service, each.namespace) == (name.service, name.namespace)]
    near = nearest(str(name), map(str, there))
    return f" (did you mean {near}?)" if near else ""
