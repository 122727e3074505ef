"""Requests that are watched: who answers for which services, and what proxies tell."""

import time
from collections.abc import Callable, Sequence

from catalog.relations.groups import groups_of
from catalog.store.inventory import holder_of
from catalog.store.view import View
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.tap import TappedRequest
from meshwright.traffic.taps import Taps, TapTable
from xds.cache import NodeKey


def taps(table: TapTable, view: Callable[[], View | None], changed: Callable[[], None]) -> Taps:
    """Return who watches: nobody yet. `changed` is called when the `table` has changed."""

    def served(proxy: ProxyName) -> tuple[ServiceKey, ...]:
        found = view()
        workload = None if found is None else holder_of(found, proxy)
        if found is None or workload is None:
            return ()
        return tuple(key for group in groups_of(found, workload.key) for key in group.services)

    return Taps(table, served, changed)


def told(found: Taps, node: NodeKey, requests: Sequence[TappedRequest]) -> bool:
    """Take what a proxy tells; say whether anybody watches it."""
    return found.told(ProxyName.parse(node), requests, time.monotonic())
