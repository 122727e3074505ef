"""Writer of the status of XMesh objects: watches the objects, and writes each status that differs."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from meshwright.kube.errors import ApiError
from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Key, Resource
from meshwright.kubernetes.status.attempts import Attempts, Budget, WritePostponed, WrittenKind
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.event import CONTROLLER
from meshwright.kubernetes.status.meshes.mesh_object import MeshObject
from meshwright.mesh.kinds import X_MESH

LOOK: Final = 60.0
"""Seconds between two checks whether the cluster serves the kind, and in which version."""

A_MINUTE: Final = 30.0
AT_ONCE: Final = 10.0
"""Writes in a minute, and writes in one burst; a cluster has one XMesh for each of its meshes."""


class MeshWriter:
    """Keeps the status of Meshwright's XMesh objects as it should be, while this server leads."""

    def __init__(
        self, cluster: Cluster, attempts: Attempts, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster, self._attempts, self._now = cluster, attempts, monotonic
        self._budget = Budget(A_MINUTE, AT_ONCE)

    async def run(self) -> None:
        """Watch the objects whenever the cluster serves the kind, until cancelled."""
        while True:
            try:
                resource = await self._resource()
            except WritePostponed as error:
                await asyncio.sleep(max(0.0, error.until - self._now()))
                continue
            if resource is None:
                await asyncio.sleep(LOOK)
            else:
                await self._follow(resource)

    async def _resource(self) -> Resource | None:
        find = partial(self._cluster.resource, X_MESH)
        return await self._attempts.make(WrittenKind.STATUS, f"find {X_MESH}", find)

    async def _follow(self, resource: Resource) -> None:
        """Watch the objects until the cluster serves the kind no longer, or in another version."""
        changed = asyncio.Event()
        reflector: Reflector[MeshObject] = Reflector(
            self._cluster.api, resource, MeshObject.parse, self._cluster.clock
        )
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(reflector.run(lambda _: changed.set()), name="watch of XMesh objects")
            await self._keep(resource, reflector, changed)
            watch.cancel()

    async def _keep(
        self, resource: Resource, reflector: Reflector[MeshObject], changed: asyncio.Event
    ) -> None:
        looked = self._now()
        while True:
            changed.clear()
            until = await self._write_all(resource, reflector.items)
            if self._now() >= looked + LOOK:
                looked = self._now()
                if await self._is_replaced(resource):
                    return
            until = looked + LOOK if until is None else min(until, looked + LOOK)
            with contextlib.suppress(TimeoutError):  # the next look, or a postponed write, is due
                async with asyncio.timeout(max(0.0, until - self._now())):
                    await changed.wait()

    async def _is_replaced(self, resource: Resource) -> bool:
        try:
            return await self._resource() != resource
        except WritePostponed:  # unknown while the API server is away
            return False

    async def _write_all(self, resource: Resource, items: Mapping[Key, Item[MeshObject]]) -> float | None:
        """Write each status that differs; return the monotonic time when a postponed one is due, or None."""
        due: list[float] = []
        for _, item in sorted(items.items()):
            mesh = item.body
            if not mesh.is_own or mesh.is_current:
                continue
            try:
                await self._write(resource, mesh)
            except WritePostponed as error:
                due.append(error.until)
        return min(due, default=None)

    async def _write(self, resource: Resource, mesh: MeshObject) -> None:
        self._budget.take(self._now())
        body = {"metadata": {"name": mesh.name}, "status": mesh.status(self._cluster.clock())}
        # Conditions and features of other managers stay, because both lists have keys.
        apply = partial(
            self._cluster.api.apply,
            resource,
            None,
            mesh.name,
            body,
            manager=CONTROLLER,
            subresource="status",
        )
        try:
            await self._attempts.make(
                WrittenKind.STATUS, f"apply {X_MESH}", apply, "", mesh.name, writes=True
            )
        except ApiError as error:
            if error.is_conflict:
                raise WritePostponed(self._now() + 1.0, is_refused=True) from error
            # The object is deleted; the watch will report this.
