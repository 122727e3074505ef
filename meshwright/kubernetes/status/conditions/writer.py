"""Writes the conditions of objects that have a status, when they are other, by server-side apply."""

from collections.abc import Callable
from functools import partial
from typing import Final

from meshwright.kube.errors import ApiError
from meshwright.kube.resource import Resource
from meshwright.kubernetes.status.attempts import Attempts, Budget, WritePostponed, WrittenKind
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.conditions.conditions import (
    Conditions,
    conditions,
    differ,
    differ_in_words,
    read,
)
from meshwright.kubernetes.status.event import CONTROLLER
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey

A_MINUTE: Final = 1200.0
AT_ONCE: Final = 100.0
"""How many writes: of a thousand objects that are new all are told within a minute."""

FIRST: Final = 3.0
AGAIN: Final = 30.0
"""How long it is waited until it is told that a roll-out is not done, and told again how far it is."""

SETTLED: Final = 60.0
"""How long after the start it is not said that nobody rejects any more what was rejected before it."""


class StatusWriter:
    """The conditions that there are, as far as we know, and what is to be written of them."""

    def __init__(
        self,
        cluster: Cluster,
        progress: Callable[[ObjectKey], Progress | None],
        attempts: Attempts,
        began: float,
    ) -> None:
        self._cluster, self._attempts = cluster, attempts
        self._standing, self._progress = cluster.standing, progress
        self._settled = began + SETTLED
        self._known: dict[ObjectKey, Conditions] = {}
        self._untold: dict[ObjectKey, float] = {}
        self._budget = Budget(A_MINUTE, AT_ONCE)

    async def remember(self, kind: Kind, namespace: str | None) -> None:
        """Read the conditions that there are. Raises WritePostponed."""
        resource = await self._served(kind)
        if resource is None:
            return
        listed = await self._attempts.make(
            WrittenKind.STATUS,
            f"list {kind}",
            lambda: self._cluster.api.list(resource, namespace),
            *((namespace,) if namespace else ()),
        )
        for raw in listed["items"]:
            metadata = raw.get("metadata") or {}
            key = ObjectKey(kind, Namespace(metadata.get("namespace") or ""), str(metadata.get("name")))
            self._known[key] = read(raw)

    async def report(self, key: ObjectKey, now: float) -> float | None:
        """Write what is other of an object; return when to look again, None if that is when it is touched.

        Raises WritePostponed.
        """
        generation = self._standing.generation(key)
        if generation is None:
            self._known.pop(key, None)
            self._untold.pop(key, None)
            return None
        before, progress = self._known.get(key, ()), self._progress(key)
        is_settled = now >= self._settled
        again = None if is_settled else self._settled
        problems = self._standing.problems(key)
        said = conditions(
            problems,
            progress,
            generation,
            before,
            self._cluster.clock(),
            server=self._cluster.who.instance,
            in_force=self._standing.has_status(key),
            settled=is_settled,
        )
        if not differ(said, before):
            return again
        if progress is None or progress.is_done or differ_in_words(said, before):
            self._untold.pop(key, None)
        elif now < (held := self._untold.setdefault(key, now + FIRST)):
            return held
        self._budget.take(now)
        await self._write(key, said, now)
        if progress is not None and not progress.is_done:
            self._untold[key] = again = now + AGAIN
        return again

    async def _served(self, kind: Kind) -> Resource | None:
        return await self._attempts.make(
            WrittenKind.STATUS, f"find {kind}", lambda: self._cluster.resource(kind)
        )

    async def _write(self, key: ObjectKey, said: Conditions, now: float) -> None:
        resource = await self._served(key.kind)
        if resource is None:
            return
        metadata = {"name": key.name, "namespace": key.namespace}
        body = {"metadata": metadata, "status": {"conditions": [each.written() for each in said]}}
        apply = partial(
            self._cluster.api.apply,
            resource,
            key.namespace,
            key.name,
            body,
            manager=CONTROLLER,
            subresource="status",
        )
        at = key.namespace, str(key)
        try:
            self._known[key] = read(
                await self._attempts.make(WrittenKind.STATUS, f"apply {key.kind}", apply, *at, writes=True)
            )
        except ApiError as error:
            if error.is_conflict:  # others write it just now
                raise WritePostponed(now + FIRST, is_refused=True) from error
            self._known.pop(key, None)  # it is gone, and will be heard of
