"""Writer of status and Events, which runs while this server holds the Lease."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

from meshwright.kubernetes.status.attempts import Attempts, Meter, WritePostponed
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.conditions.osm_writer import WordWriter
from meshwright.kubernetes.status.conditions.writer import StatusWriter
from meshwright.kubernetes.status.events.writer import EventWriter
from meshwright.kubernetes.status.meshes.writer import MeshWriter
from meshwright.kubernetes.status.parents.writer import Decided, ParentWriter
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey

LOOK: Final = 60.0
"""Seconds between two checks for Events to renew."""

AT_A_TIME: Final = 50
"""Maximum objects in a row before the event loop runs other tasks."""


class Writer:
    """Writes the changes of the marked objects in the status table of `cluster`.

    The reporter sets `known` when the table is complete, and `changed` when it marks objects. `namespaces`
    limits the namespaces that are read at the start; empty means all namespaces. `decided` returns the
    verdict about a route of the Gateway API.
    """

    def __init__(
        self,
        cluster: Cluster,
        progress: Callable[[ObjectKey], Progress | None],
        decided: Decided,
        meter: Meter,
        *,
        status_kinds: Iterable[Kind],
        route_kinds: Iterable[Kind],
        namespaces: tuple[str, ...] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.changed, self.known = asyncio.Event(), asyncio.Event()
        self._cluster, self._standing, self._progress = cluster, cluster.standing, progress
        self._decided, self._meter, self._now = decided, meter, monotonic
        self._status_kinds, self._route_kinds = tuple(status_kinds), tuple(route_kinds)
        self._namespaces: tuple[str | None, ...] = namespaces or (None,)

    async def lead(self) -> None:
        """Write status and Events until cancelled, in continuation of those that any server wrote before."""
        attempts, began = Attempts(self._meter, random.random, self._now), self._now()
        statuses = StatusWriter(self._cluster, self._progress, attempts, began)
        event_writer = EventWriter(self._cluster, attempts, began)
        words = WordWriter(self._cluster, attempts)
        parents = ParentWriter(self._cluster, self._decided, attempts)
        self._meter.reporting(leads=True)
        try:
            await self._remember(statuses, event_writer, parents)
            await self.known.wait()  # with an incomplete table, all reported problems would seem resolved
            self._standing.touch_all()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(MeshWriter(self._cluster, attempts).run(), name="statuses of XMesh objects")
                await self._write(statuses, event_writer, words, parents)
        finally:
            self._meter.reporting(leads=False)

    async def _remember(
        self, statuses: StatusWriter, event_writer: EventWriter, parents: ParentWriter
    ) -> None:
        """Read the present status and Events. If RBAC forbids this, some may be written a second time."""
        for namespace in self._namespaces:
            for kind in self._status_kinds:
                await self._while_away(partial(statuses.remember, kind, namespace))
            for kind in self._route_kinds:
                await self._while_away(partial(parents.remember, kind, namespace))
            await self._while_away(partial(event_writer.remember, namespace))

    async def _while_away(self, request: Callable[[], Awaitable[None]]) -> None:
        """Repeat a request until the API server answers or refuses it."""
        while True:
            try:
                return await request()
            except WritePostponed as error:
                if error.is_refused:
                    return None
                await asyncio.sleep(max(0.0, error.until - self._now()))

    async def _write(
        self, statuses: StatusWriter, event_writer: EventWriter, words: WordWriter, parents: ParentWriter
    ) -> None:
        later: dict[ObjectKey, float] = {}
        looked = self._now()
        while True:
            touched = self._standing.take()
            with_status = [key for key in touched if self._standing.is_of_status(key.kind)]
            others = [key for key in touched if not self._standing.is_of_status(key.kind)]
            worded = [key for key in touched if self._standing.is_worded(key.kind)]
            routes = [key for key in touched if self._standing.is_route(key.kind)]
            for report, keys in (
                (statuses.report, with_status),
                (event_writer.report, others),
                (words.report, worded),
                (parents.report, routes),
            ):
                await self._some(report, keys, later)
            if not self._standing.is_touched:
                await self._due(min([looked + LOOK, *later.values()]))
            now = self._now()
            self._standing.touch([key for key, at in later.items() if at <= now])
            if now >= looked + LOOK:
                looked = now
                event_writer.look()

    async def _some(
        self,
        report: Callable[[ObjectKey, float], Awaitable[float | None]],
        keys: Iterable[ObjectKey],
        later: dict[ObjectKey, float],
    ) -> None:
        """Report the status of objects. A postponed object gets its next time in `later`."""
        full = float("-inf")
        for number, key in enumerate(keys, 1):
            if number % AT_A_TIME == 0:
                await asyncio.sleep(0)
            later.pop(key, None)
            # With an empty budget, or without the API server, the other objects must wait too.
            if full > self._now():
                later[key] = full
                continue
            try:
                again = await report(key, self._now())
            except WritePostponed as error:
                again = error.until
                full = full if error.is_refused else error.until
            if again is not None:
                later[key] = again

    async def _due(self, at: float) -> None:
        """Wait until an object is marked for a report, or until the monotonic time `at`."""
        try:
            async with asyncio.timeout(max(0.0, at - self._now())):
                await self.changed.wait()
        except TimeoutError:
            return
        self.changed.clear()
