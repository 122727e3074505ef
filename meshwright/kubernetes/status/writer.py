"""Writer of status and Events, which runs while this server holds the Lease."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from meshwright.kubernetes.status.ancestors.writer import AncestorWriter, PolicyDecisions
from meshwright.kubernetes.status.attempts import Attempts, Meter, WritePostponed
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.conditions.osm_writer import WordWriter
from meshwright.kubernetes.status.conditions.writer import StatusWriter
from meshwright.kubernetes.status.events.writer import EventWriter
from meshwright.kubernetes.status.gateways.writer import GatewayDecisions, GatewayWriter
from meshwright.kubernetes.status.meshes.writer import MeshWriter
from meshwright.kubernetes.status.parents.writer import ParentWriter, RouteDecisions
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey

LOOK: Final = 60.0
"""Seconds between two checks for Events to renew."""

Report = Callable[[ObjectKey, float], Awaitable[float | None]]
"""Report on an object at a monotonic time; returns the time of the next report, or raises WritePostponed."""

AT_A_TIME: Final = 50
"""Maximum objects in a row before the event loop runs other tasks."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions of the Gateway API: about routes, gateways with their classes, and BackendTLSPolicies."""

    routes: RouteDecisions
    gateways: GatewayDecisions
    policies: PolicyDecisions


@dataclass(frozen=True, slots=True)
class _Writers:
    """The writers of one time as the leader."""

    statuses: StatusWriter
    events: EventWriter
    words: WordWriter
    parents: ParentWriter
    gateways: GatewayWriter
    ancestors: AncestorWriter


class Writer:
    """Writes the changes of the marked objects in the status table of `cluster`.

    The reporter sets `known` when the table is complete, and `changed` when it marks objects. `namespaces`
    limits the namespaces that are read at the start; empty means all namespaces. `decisions` are those
    of the Gateway API.
    """

    def __init__(
        self,
        cluster: Cluster,
        progress: Callable[[ObjectKey], Progress | None],
        decisions: Decisions,
        meter: Meter,
        *,
        status_kinds: Iterable[Kind],
        route_kinds: Iterable[Kind],
        gateway_kinds: Iterable[Kind] = (),
        policy_kinds: Iterable[Kind] = (),
        namespaces: tuple[str, ...] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.changed, self.known = asyncio.Event(), asyncio.Event()
        self._cluster, self._standing, self._progress = cluster, cluster.standing, progress
        self._decisions, self._meter, self._now = decisions, meter, monotonic
        self._status_kinds, self._route_kinds = tuple(status_kinds), tuple(route_kinds)
        self._gateway_kinds, self._policy_kinds = tuple(gateway_kinds), tuple(policy_kinds)
        self._namespaces: tuple[str | None, ...] = namespaces or (None,)

    async def lead(self) -> None:
        """Write status and Events until cancelled, in continuation of those that any server wrote before."""
        attempts, began = Attempts(self._meter, random.random, self._now), self._now()
        writers = _Writers(
            StatusWriter(self._cluster, self._progress, attempts, began),
            EventWriter(self._cluster, attempts, began),
            WordWriter(self._cluster, attempts),
            ParentWriter(self._cluster, self._decisions.routes, attempts),
            GatewayWriter(self._cluster, self._decisions.gateways, self._progress, attempts, began),
            AncestorWriter(self._cluster, self._decisions.policies, attempts),
        )
        self._meter.reporting(leads=True)
        try:
            await self._remember(writers)
            await self.known.wait()  # with an incomplete table, all reported problems would seem resolved
            self._standing.touch_all()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(MeshWriter(self._cluster, attempts).run(), name="statuses of XMesh objects")
                await self._write(writers)
        finally:
            self._meter.reporting(leads=False)

    async def _remember(self, writers: _Writers) -> None:
        """Read the present status and Events. If RBAC forbids this, some may be written a second time."""
        for namespace in self._namespaces:
            for kind in self._status_kinds:
                await self._while_away(partial(writers.statuses.remember, kind, namespace))
            for kind in self._route_kinds:
                await self._while_away(partial(writers.parents.remember, kind, namespace))
            for kind in self._gateway_kinds:
                await self._while_away(partial(writers.gateways.remember, kind, namespace))
            for kind in self._policy_kinds:
                await self._while_away(partial(writers.ancestors.remember, kind, namespace))
            await self._while_away(partial(writers.events.remember, namespace))

    async def _while_away(self, request: Callable[[], Awaitable[None]]) -> None:
        """Repeat a request until the API server answers or refuses it."""
        while True:
            try:
                return await request()
            except WritePostponed as error:
                if error.is_refused:
                    return None
                await asyncio.sleep(max(0.0, error.until - self._now()))

    async def _write(self, writers: _Writers) -> None:
        later: dict[ObjectKey, float] = {}
        looked = self._now()
        while True:
            touched = self._standing.take()
            # Before all reports, because several may concern one object.
            for key in touched:
                later.pop(key, None)
            for report, concerns in self._reports(writers):
                keys = [key for key in touched if concerns(key.kind)]
                await self._some(report, keys, later)
            if not self._standing.is_touched:
                await self._due(min([looked + LOOK, *later.values()]))
            now = self._now()
            self._standing.touch([key for key, at in later.items() if at <= now])
            if now >= looked + LOOK:
                looked = now
                writers.events.look()

    def _reports(self, writers: _Writers) -> Iterator[tuple[Report, Callable[[Kind], bool]]]:
        """Yield the functions that report, each with a test of the kinds on which it reports."""
        standing = self._standing
        yield writers.statuses.report, standing.is_of_status
        yield writers.events.report, lambda kind: not standing.is_of_status(kind)
        yield writers.words.report, standing.is_worded
        yield writers.parents.report, standing.is_route
        yield writers.gateways.report, standing.is_gateway
        yield writers.ancestors.report, standing.is_policy

    async def _some(
        self,
        report: Report,
        keys: Iterable[ObjectKey],
        later: dict[ObjectKey, float],
    ) -> None:
        """Report the status of objects. `later` gets the next time of an object, the first of all reports."""
        full = float("-inf")
        for number, key in enumerate(keys, 1):
            if number % AT_A_TIME == 0:
                await asyncio.sleep(0)
            # With an empty budget, or without the API server, the other objects must wait too.
            if full > self._now():
                later[key] = min(full, later.get(key, full))
                continue
            try:
                again = await report(key, self._now())
            except WritePostponed as error:
                again = error.until
                full = full if error.is_refused else error.until
            if again is not None:
                later[key] = min(again, later.get(key, again))

    async def _due(self, at: float) -> None:
        """Wait until an object is marked for a report, or until the monotonic time `at`."""
        try:
            async with asyncio.timeout(max(0.0, at - self._now())):
                await self.changed.wait()
        except TimeoutError:
            return
        self.changed.clear()
