"""Writes the status of objects whose kinds have words in it, when they are other, by server-side apply."""

from functools import partial
from typing import Final

from meshwright.kube.errors import ApiError
from meshwright.kubernetes.status.attempts import Attempts, Budget, WritePostponed, WrittenKind
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.conditions.osm_words import WORDED, Words
from meshwright.kubernetes.status.event import CONTROLLER
from meshwright.mesh.objects import ObjectKey

A_MINUTE: Final = 600.0
AT_ONCE: Final = 50.0
AGAIN: Final = 3.0


class WordWriter:
    """The words that were written, and what is to be written of them.

    What stands in a status at the start is not read: to write the same again changes nothing, as it is
    applied.
    """

    def __init__(self, cluster: Cluster, attempts: Attempts) -> None:
        self._cluster, self._attempts = cluster, attempts
        self._written: dict[ObjectKey, tuple[int, Words]] = {}
        self._budget = Budget(A_MINUTE, AT_ONCE)

    async def report(self, key: ObjectKey, now: float) -> float | None:
        """Write what is other of an object; it is looked at again when it is touched.

        Raises WritePostponed.
        """
        standing = self._cluster.standing
        generation = standing.generation(key)
        if generation is None:
            self._written.pop(key, None)
            return None
        words = WORDED[key.kind](standing.problems(key), standing.state(key))
        if not words or self._written.get(key) == (generation, words):
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
            if error.is_conflict:  # others write it just now
                raise WritePostponed(now + AGAIN, is_refused=True) from error
            return None  # it is gone, or its definition has no status
        self._written[key] = generation, words
        return None
