"""Which proxies are here, and which the workloads make one expect.

A proxy is here while it has a stream, and for a while after its last one ended.
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
"""Proxies that count as here without a stream; beyond, those that left first do not."""


ARRIVALS: Final = Pace(quiet=0.01, longest=0.05)
"""How arrivals are gathered: of many at once those that come while others are served are taken together."""


class ConnectionGracePeriod:
    """Who came and who left, and who counts as here for that: so many seconds after the last stream ended.

    Times are arguments, of one monotonic clock.
    """

    def __init__(self, seconds: float, most: int = MOST_LINGERING) -> None:
        self._seconds = seconds
        self._most = most
        self._left: dict[NodeKey, float] = {}  # in the order of leaving
        self._edits: dict[ProxyName, ProxyName | None] = {}
        self._here: Picture[ProxyName, ProxyName] = Picture()

    def came(self, node: NodeKey) -> bool:
        """Take it that a proxy has a stream; say whether it did not count as here."""
        if self._left.pop(node, None) is not None:
            return False
        name = ProxyName.parse(node)
        self._edits[name] = name
        return True

    def left(self, node: NodeKey, now: float) -> None:
        """Take it that a proxy has no stream any more."""
        self._left[node] = now

    def due(self) -> float | None:
        """Return when the next of them does not count any more, None where none lingers."""
        first = next(iter(self._left.values()), None)
        if first is None or len(self._left) > self._most:
            return first
        return first + self._seconds

    def here(self, now: float) -> Picture[ProxyName, ProxyName]:
        """Return who counts as here."""
        while (due := self.due()) is not None and (due <= now or len(self._left) > self._most):
            node = next(iter(self._left))
            del self._left[node]
            self._edits[ProxyName.parse(node)] = None
        self._here, self._edits = self._here.changed(self._edits), {}
        return self._here


class Presence:
    """Who is here, told by who is watched in the cache; used on the event loop."""

    def __init__(
        self, lingering: ConnectionGracePeriod, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._lingering = lingering
        self._now = monotonic
        self._noted = asyncio.Event()
        self._came: tuple[float, float] | None = None
        self._looked: float | None = None

    def attended(self, node: NodeKey, *, here: bool) -> None:
        """Take note that a proxy has a stream now, or none any more."""
        now = self._now()
        if not here:
            self._lingering.left(node, now)
        elif self._lingering.came(node):
            first, _ = self._came or (now, now)
            self._came = (first, now)
        else:
            return
        self._noted.set()

    def here(self) -> Picture[ProxyName, ProxyName]:
        """Return who counts as here: those who came are attended to with that."""
        now = self._now()
        self._came, self._looked = None, now
        return self._lingering.here(now)

    async def due(self) -> None:
        """Return when it is time to look who is here."""
        await until(self._due, self._noted, self._now)

    def _due(self) -> float | None:
        arrivals = (
            None if self._came is None else begin_at(PendingChanges(*self._came, self._looked), ARRIVALS)
        )
        moments = (arrivals, self._lingering.due())
        return min((each for each in moments if each is not None), default=None)


class ExpectedSidecars:
    """The name of each sidecar, kept by the workloads that come, go or change, whoever is here."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._touched: dict[SidecarKey, None] = {}
        self._proxies: Picture[SidecarKey, ProxyName] = Picture()
        view.workloads.followed(self)

    def follow(self, _: WorkloadKey, old: Workload | AbsentInput, new: Workload | AbsentInput) -> None:
        """Take note of a workload that is another one now."""
        for each in (old, new):
            if not isinstance(each, AbsentInput) and (claimed := each.sidecar) is not None:
                self._touched[claimed] = None

    def proxies(self) -> Picture[SidecarKey, ProxyName]:
        """Return them: of several workloads that claim one sidecar, that of its claimant."""
        if self._touched:
            held = {each: claimant_of(self._view, each) for each in self._touched}
            names = {each: None if found is None else found.proxy_name for each, found in held.items()}
            self._proxies, self._touched = self._proxies.changed(names), {}
        return self._proxies
