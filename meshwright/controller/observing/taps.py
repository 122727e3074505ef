"""Taps of a server, with the services of each proxy."""

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
    """Return an empty set of subscriptions; `changed` is called when the `table` has changed."""

    def served(proxy: ProxyName) -> tuple[ServiceKey, ...]:
        result = view()
        workload = None if result is None else holder_of(result, proxy)
        if result is None or workload is None:
            return ()
        return tuple(key for group in groups_of(result, workload.key) for key in group.services)

    return Taps(table, served, changed)


def told(result: Taps, node: NodeKey, requests: Sequence[TappedRequest]) -> bool:
    """Pass reported requests on; return True if anyone subscribes to a service of the proxy."""
    return result.told(ProxyName.parse(node), requests, time.monotonic())
