"""Connected proxies, and the proxies expected because of their workloads.

A proxy counts as connected while a stream is open, and for a grace period after the last stream has ended.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from catalog.store.inventory import claimant_of
from catalog.store.view import View
from meshwright.delivery.timing.debounce import Pace, PendingChanges, begin_at, until
from meshwright.engine.node import AbsentInput
from meshwright.mesh.identity import ProxyName, SidecarKey
from meshwright.mesh.values.picture import Picture
from meshwright.mesh.workload import Workload, WorkloadKey
from xds.cache import NodeKey

MOST_LINGERING: Final = 10_000
"""Maximum number of proxies in their grace period; beyond it, the first disconnected proxy is dropped."""


ARRIVALS: Final = Pace(quiet=0.01, longest=0.05)
"""Pace for new proxies: proxies connecting while others are served are served together."""


class ConnectionGracePeriod:
    """Proxies connected now, or disconnected less than `seconds` ago.

    Times are arguments, in seconds of one monotonic clock.
    """

    def __init__(self, seconds: float, most: int = MOST_LINGERING) -> None:
        self._seconds = seconds
        self._most = most
        self._left: dict[NodeKey, float] = {}  # in the order of leaving
        self._edits: dict[ProxyName, ProxyName | None] = {}
        self._here: Picture[ProxyName, ProxyName] = Picture()

    def connected(self, node: NodeKey) -> bool:
        """Record the first stream of a proxy; return True if the proxy did not count as connected."""
        # Reconnected within the grace period: the group was kept current, and nothing has changed.
        if self._left.pop(node, None) is not None:
            return False
        name = ProxyName.parse(node)
        self._edits[name] = name
        return True

    def left(self, node: NodeKey, now: float) -> None:
        """Record the end of a proxy's last stream."""
        self._left[node] = now

    def due(self) -> float | None:
        """Return the time at which the next proxy's grace period ends, or `None`."""
        first = next(iter(self._left.values()), None)
        # A time in the past: with too many entries the oldest ends at once.
        if first is None or len(self._left) > self._most:
            return first
        return first + self._seconds

    def here(self, now: float) -> Picture[ProxyName, ProxyName]:
        """Return the proxies that count as connected at the time `now`."""
        while (due := self.due()) is not None and (due <= now or len(self._left) > self._most):
            # Dictionaries keep the order of insertion, so the first entry disconnected first.
            node = next(iter(self._left))
            del self._left[node]
            self._edits[ProxyName.parse(node)] = None
        self._here, self._edits = self._here.changed(self._edits), {}
        return self._here


class Presence:
    """Connected proxies, reported by the first and last watch of a node in the cache.

    Use on the event loop.
    """

    def __init__(
        self, lingering: ConnectionGracePeriod, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._lingering = lingering
        self._now = monotonic
        self._noted = asyncio.Event()
        self._arrivals: tuple[float, float] | None = None
        self._looked: float | None = None

    def attended(self, node: NodeKey, *, here: bool) -> None:
        """Record that a proxy has opened the first stream (`here`), or closed the last one."""
        now = self._now()
        if not here:
            self._lingering.left(node, now)
        elif self._lingering.connected(node):
            first, _ = self._arrivals or (now, now)
            self._arrivals = (first, now)
        else:
            return
        self._noted.set()

    def here(self) -> Picture[ProxyName, ProxyName]:
        """Return the proxies that count as connected, and clear the notification of new ones."""
        now = self._now()
        self._arrivals, self._looked = None, now
        return self._lingering.here(now)

    async def due(self) -> None:
        """Wait until new proxies should be served, or until a proxy's grace period has ended."""
        await until(self._due, self._noted, self._now)

    def _due(self) -> float | None:
        arrivals = (
            None
            if self._arrivals is None
            else begin_at(PendingChanges(*self._arrivals, self._looked), ARRIVALS)
        )
        moments = (arrivals, self._lingering.due())
        return min((moment for moment in moments if moment is not None), default=None)


class ExpectedSidecars:
    """Names of the sidecars of all workloads, updated when a workload is added, changed or removed."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._touched: dict[SidecarKey, None] = {}
        self._proxies: Picture[SidecarKey, ProxyName] = Picture()
        view.workloads.followed(self)

    def follow(self, _: WorkloadKey, old: Workload | AbsentInput, new: Workload | AbsentInput) -> None:
        """Record the sidecars of an added, changed or removed workload, for the next call of `proxies`."""
        for item in (old, new):
            if not isinstance(item, AbsentInput) and (claimed := item.sidecar) is not None:
                self._touched[claimed] = None

    def proxies(self) -> Picture[SidecarKey, ProxyName]:
        """Return the proxy names by sidecar; if several workloads claim one sidecar, the claimant's name."""
        if self._touched:
            held = {sidecar: claimant_of(self._view, sidecar) for sidecar in self._touched}
            names = {
                sidecar: None if workload is None else workload.proxy_name
                for sidecar, workload in held.items()
            }
            self._proxies, self._touched = self._proxies.changed(names), {}
        return self._proxies
