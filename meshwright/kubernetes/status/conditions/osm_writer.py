"""Writer of the status of OSM kinds. Only changed values are written, by server-side apply."""

from functools import partial
from typing import Final

from meshwright.kube.errors import ApiError
from meshwright.kubernetes.status.attempts import Attempts, Budget, WritePostponed, WrittenKind
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.conditions.osm_words import WORDED, Words
from meshwright.kubernetes.status.event import CONTROLLER
from meshwright.kubernetes.status.known_statuses import KnownStatuses
from meshwright.mesh.objects import ObjectKey

A_MINUTE: Final = 600.0
AT_ONCE: Final = 50.0
AGAIN: Final = 3.0


class WordWriter:
    """Cache of the written status fields, and their writer.

    The status is not read at the start, because a server-side apply of equal values changes nothing.
    """

    def __init__(self, cluster: Cluster, attempts: Attempts) -> None:
        self._cluster, self._attempts = cluster, attempts
        self._written: KnownStatuses[tuple[int, Words]] = KnownStatuses()
        self._budget = Budget(A_MINUTE, AT_ONCE)

    async def report(self, key: ObjectKey, now: float) -> float | None:
        """Write the status of an object if the status changed. Raises WritePostponed.

        Returns None: the object is reported again after its next change.
        """
        standing = self._cluster.standing
        generation = standing.generation(key)
        if generation is None:
            self._written.forget(key)
            return None
        words = WORDED[key.kind](standing.problems(key), standing.state(key))
        uid = standing.uid(key)
        if not words or self._written.get(key, uid) == (generation, words):
            return None
        resource = await self._attempts.make(
            WrittenKind.STATUS, f"find {key.kind}", lambda: self._cluster.resource(key.kind)
        )
        if resource is None:
            return None
        self._budget.take(now)
        body = {"metadata": {"name": key.name, "namespace": key.namespace}, "status": dict(words)}
        apply = partial(
            self._cluster.api.apply,
            resource,
            key.namespace,
            key.name,
            body,
            manager=CONTROLLER,
            subresource="status",
        )
        try:
            await self._attempts.make(
                WrittenKind.STATUS, f"apply {key.kind}", apply, key.namespace, str(key), writes=True
            )
        except ApiError as error:
            if error.is_conflict:  # another client writes the object now
                raise WritePostponed(now + AGAIN, is_refused=True) from error
            return None  # the object is deleted, or its definition has no status
        self._written.keep(key, uid, (generation, words))
        return None
