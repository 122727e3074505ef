"""Names of proxies that no workload will have: whoever dials in by one is held silent, or refused."""

from bisect import bisect_left
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from catalog.store.inventory import by_uuid, holder_of
from catalog.store.view import View
from mesh.identity import ProxyName

COMPARED: Final = 200
"""Among so many names one that is like another is looked for: somebody else waits for the event loop."""


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
    there = sorted(each.proxy_name for each in holders if each is not None and each.proxy_name is not None)
    near = get_close_matches(str(name), map(str, _comparable(name, there)), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _comparable(name: ProxyName, there: Sequence[ProxyName]) -> Sequence[ProxyName]:
    """Return all, or of more than COMPARED those of its service; of these those that begin most like it."""
    if len(there) > COMPARED:
        there = [each for each in there if (each.service, each.namespace) == (name.service, name.namespace)]
    at = bisect_left(there, name)
    return there[max(0, at - COMPARED // 2) :][:COMPARED]
