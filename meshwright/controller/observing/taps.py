"""Taps of a server: subscriptions to requests, restricted to the services of each reporting proxy."""

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
    """Return an empty set of taps of requests.

    `changed` is called when the requests to be reported by sidecars (`table`) have changed.
    """

    def served(proxy: ProxyName) -> tuple[ServiceKey, ...]:
        result = view()
        workload = None if result is None else holder_of(result, proxy)
        if result is None or workload is None:
            return ()
        return tuple(key for group in groups_of(result, workload.key) for key in group.services)

    return Taps(table, served, changed)


def pass_to_taps(result: Taps, node: NodeKey, requests: Sequence[TappedRequest]) -> bool:
    """Pass requests reported by a proxy to the taps of the proxy's services.

    Return True if such a tap exists.
    """
    return result.handle_report(ProxyName.parse(node), requests, time.monotonic())
