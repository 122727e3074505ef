"""Names of proxies that no workload will have: whoever dials in by one is held silent, or refused."""

from catalog.store.inventory import by_uuid, holder_of
from catalog.store.view import View
from mesh.identity import ProxyName
from mesh.spelling import COMPARED, nearest


def nobody_has(view: View, name: ProxyName) -> str:
    """Return why no workload has a proxy of that name, and which may be meant; empty if one has."""
    holder = holder_of(view, name.uuid)
    if holder is None:
        return f"no workload has the UUID {name.uuid}{_meant(view, name)}"
    if holder.proxy_name == name:
        return ""
    return f"workload {holder.key} has the UUID {name.uuid}, and its proxy is {holder.proxy_name}"


def _meant(view: View, name: ProxyName) -> str:
    holders = (holder_of(view, uuid) for uuid in by_uuid(view))
    there = [each.proxy_name for each in holders if each is not None and each.proxy_name is not None]
    if len(there) > COMPARED:
        # A UUID has no beginning that says where to look; what the name says besides does.
        there = [each for each in there if (each.service, each.namespace) == (name.service, name.namespace)]
    near = nearest(str(name), map(str, there))
    return f" (did you mean {near}?)" if near else ""
