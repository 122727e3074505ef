"""Writer of `status.parents`. Only changed entries are written, by read, modify and write."""

from collections.abc import Callable
from functools import partial
from typing import Final

from catalog.relations.verdicts import Attachment
from meshwright.kube.errors import ApiError
from meshwright.kube.resource import Resource
from meshwright.kubernetes.status.attempts import Attempts, Budget, WritePostponed, WrittenKind
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.parents.entries import (
    ParentEntries,
    differ,
    is_outdated,
    merged_entries,
    own_entries,
    refused_entries,
    wanted_entries,
)
from meshwright.kubernetes.status.served_objects import Raw, ServedObjects
from meshwright.kubernetes.status.statements import Aspect, aspect, message
from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Severity

Decided = Callable[[ObjectKey], Attachment | None]
"""Function that returns the verdict about a route, or None if the route is not in force."""

A_MINUTE: Final = 1200.0
AT_ONCE: Final = 100.0
"""Writes in a minute, and writes in one burst: 1,000 new routes get their status within a minute."""

TRIES: Final = 3
"""Attempts to write while other controllers write the same object, before the write is postponed."""

AGAIN: Final = 3.0
"""Seconds until a write is attempted again after conflicts."""


class ParentWriter:
    """Writer of the entries of Meshwright, with a cache of those in the cluster."""

    def __init__(self, cluster: Cluster, decided: Decided, attempts: Attempts) -> None:
        self._cluster, self._attempts, self._decided = cluster, attempts, decided
        self._objects = ServedObjects(cluster, attempts)
        self._known: dict[ObjectKey, ParentEntries] = {}
        self._refused: dict[ObjectKey, tuple[int, str]] = {}
        self._budget = Budget(A_MINUTE, AT_ONCE)

    async def remember(self, kind: Kind, namespace: str | None) -> None:
        """Read the present entries of a kind's objects from the cluster. Raises WritePostponed."""
        for key, raw in await self._objects.listed(kind, namespace):
            self._known[key] = own_entries(raw)

    async def report(self, key: ObjectKey, now: float) -> float | None:
        """Write the entries of a route if they changed. Raises WritePostponed.

        Returns None: the route is reported again after its next change.
        """
        generation = self._cluster.standing.generation(key)
        if generation is None:
            self._known.pop(key, None)
            self._refused.pop(key, None)
            return None
        decided = self._decided(key)
        if decided is None:
            await self._refuse(key, generation, now)
            return None
        self._refused.pop(key, None)
        problems = self._cluster.standing.problems(key)
        rejected = [problem for problem in problems if aspect(problem) is Aspect.PROGRAMMED]
        wanted = wanted_entries(decided, generation, rejected)
        if differ(wanted, self._known.get(key, ())):
            await self._change(key, generation, lambda _: wanted, now)
        return None

    async def _refuse(self, key: ObjectKey, generation: int, now: float) -> None:
        """Report that a route is not in force at any parent, because its manifest is refused."""
        problems = self._cluster.standing.problems(key)
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        reason = generation, message(errors)
        if errors and self._refused.get(key) != reason:
            await self._change(key, generation, lambda raw: refused_entries(raw, reason[1], generation), now)
            self._refused[key] = reason

    async def _change(
        self, key: ObjectKey, generation: int, wanted: Callable[[Raw], ParentEntries], now: float
    ) -> None:
        resource = await self._objects.resource(key.kind)
        if resource is None:
            return
        self._budget.take(now)
        for _ in range(TRIES):
            try:
                await self._write(resource, key, generation, wanted)
            except ApiError as error:
                if error.is_conflict:  # another controller has written the object since it was read
                    continue
                self._known.pop(key, None)  # the object is deleted; the watch will report this
            return
        raise WritePostponed(now + AGAIN, is_refused=True)

    async def _write(
        self, resource: Resource, key: ObjectKey, generation: int, wanted: Callable[[Raw], ParentEntries]
    ) -> None:
        api, at = self._cluster.api, (key.namespace, str(key))
        get = partial(api.get, resource, key.namespace, key.name)
        raw = await self._attempts.make(WrittenKind.STATUS, f"get {key.kind}", get, *at)
        if is_outdated(raw, generation):
            return  # the watch will report the newer object, or a newer server has reported it
        entries = merged_entries(raw, wanted(raw), self._cluster.clock())
        status = raw.get("status") or {}
        if entries != (status.get("parents") or []):
            body = {**raw, "status": {**status, "parents": entries}}
            replace = partial(api.replace, resource, key.namespace, key.name, body, subresource="status")
            raw = await self._attempts.make(
                WrittenKind.STATUS, f"update {key.kind}", replace, *at, writes=True
            )
        self._known[key] = own_entries(raw)
