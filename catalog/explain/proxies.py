"""Names of proxies that no workload will have: whoever dials in by one is held silent, or refused."""

from difflib import get_close_matches

from catalog.store.inventory import by_uuid, holder_of
from catalog.store.view import View
from mesh.identity import ProxyName


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
    there = sorted(str(each.proxy_name) for each in holders if each is not None)
    near = get_close_matches(str(name), there, n=1)
    return f" (did you mean {near[0]}?)" if near else ""
