"""Writer of conditions. Only changed conditions are written, by server-side apply."""

from collections.abc import Callable
from functools import partial
from typing import Final

from meshwright.kube.errors import ApiError
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
from meshwright.kubernetes.status.known_statuses import KnownStatuses, uid_of
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.kubernetes.status.served_objects import ServedObjects
from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey

A_MINUTE: Final = 1200.0
AT_ONCE: Final = 100.0
"""Writes in a minute, and writes in one burst: 1,000 new objects get their status within a minute."""

FIRST: Final = 3.0
AGAIN: Final = 30.0
"""Seconds until a pending rollout is reported first, and seconds between two reports of progress."""

SETTLED: Final = 60.0
"""Seconds after the start for which rejections from before the start stay reported."""


class StatusWriter:
    """Writer of conditions, with a cache of the conditions in the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        progress: Callable[[ObjectKey], Progress | None],
        attempts: Attempts,
        began: float,
    ) -> None:
        self._cluster, self._attempts = cluster, attempts
        self._objects = ServedObjects(cluster, attempts)
        self._standing, self._progress = cluster.standing, progress
        self._settled = began + SETTLED
        self._known: KnownStatuses[Conditions] = KnownStatuses()
        self._untold: dict[ObjectKey, float] = {}
        self._budget = Budget(A_MINUTE, AT_ONCE)

    async def remember(self, kind: Kind, namespace: str | None) -> None:
        """Read the present conditions of a kind's objects from the cluster. Raises WritePostponed."""
        for key, raw in await self._objects.listed(kind, namespace):
            self._known.keep(key, uid_of(raw), read(raw))

    async def report(self, key: ObjectKey, now: float) -> float | None:
        """Write the conditions of an object if they changed. Raises WritePostponed.

        Returns the monotonic time of the next report; None if the next report follows the next change.
        """
        generation = self._standing.generation(key)
        if generation is None:
            self._known.forget(key)
            self._untold.pop(key, None)
            return None
        before = self._known.get(key, self._standing.uid(key)) or ()
        progress = self._progress(key)
        is_settled = now >= self._settled
        again = None if is_settled else self._settled
        problems = self._standing.problems(key)
        answer = conditions(
            problems,
            progress,
            generation,
            before,
            self._cluster.clock(),
            server=self._cluster.reporter.instance,
            in_force=self._standing.has_status(key),
            settled=is_settled,
        )
        if not differ(answer, before):
            return again
        # Progress alone waits FIRST seconds, so that a quick rollout needs only one write.
        if progress is None or progress.is_done or differ_in_words(answer, before):
            self._untold.pop(key, None)
        elif now < (held := self._untold.setdefault(key, now + FIRST)):
            return held
        self._budget.take(now)
        await self._write(key, answer, now)
        if progress is not None and not progress.is_done:
            self._untold[key] = again = now + AGAIN
        return again

    async def _write(self, key: ObjectKey, reported: Conditions, now: float) -> None:
        resource = await self._objects.resource(key.kind)
        if resource is None:
            return
        metadata = {"name": key.name, "namespace": key.namespace}
        body = {
            "metadata": metadata,
            "status": {"conditions": [condition.written() for condition in reported]},
        }
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
            raw = await self._attempts.make(WrittenKind.STATUS, f"apply {key.kind}", apply, *at, writes=True)
        except ApiError as error:
            if error.is_conflict:  # another client writes the object now
                raise WritePostponed(now + FIRST, is_refused=True) from error
            self._known.forget(key)  # the object is deleted; the watch will report this
        else:
            self._known.keep(key, uid_of(raw), read(raw))
