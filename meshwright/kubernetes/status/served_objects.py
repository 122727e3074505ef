"""Objects of the kinds with a status, as the API server has them, for the writers of statuses."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from meshwright.kube.errors import ApiError
from meshwright.kube.resource import Resource
from meshwright.kubernetes.status.attempts import Attempts, WritePostponed, WrittenKind
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey

Raw = Mapping[str, Any]
"""An object as the API server has it."""

TRIES: Final = 3
"""Attempts to write while other controllers write the same object, before the write is postponed."""

AGAIN: Final = 3.0
"""Seconds until a write is attempted again after conflicts."""


@dataclass(frozen=True, slots=True)
class ServedObjects:
    """The objects of a cluster; requests that fail are made again by `attempts`."""

    cluster: Cluster
    attempts: Attempts

    async def resource(self, kind: Kind) -> Resource | None:
        """Return the served resource of a kind; None if there is none. Raises WritePostponed."""
        return await self.attempts.make(
            WrittenKind.STATUS, f"find {kind}", lambda: self.cluster.resource(kind)
        )

    async def listed(self, kind: Kind, namespace: str | None) -> Iterator[tuple[ObjectKey, Raw]]:
        """Return the objects of a kind with their keys; without a namespace all. Raises WritePostponed."""
        resource = await self.resource(kind)
        if resource is None:
            return iter(())
        listed = await self.attempts.make(
            WrittenKind.STATUS,
            f"list {kind}",
            lambda: self.cluster.api.list(resource, namespace),
            *((namespace,) if namespace else ()),
        )
        return ((_key(kind, raw), raw) for raw in listed["items"])

    async def change_status(
        self, key: ObjectKey, change: Callable[[Raw], Raw | None], now: float
    ) -> Raw | None:
        """Change the status of an object by read, modify and write. Raises WritePostponed.

        `change` returns the new status of an object, or None to leave the object alone. The result is the
        object in the cluster; None if it is deleted, or its kind is not served.
        """
        resource = await self.resource(key.kind)
        if resource is None:
            return None
        for _ in range(TRIES):
            try:
                return await self._changed(resource, key, change)
            except ApiError as error:
                if error.is_conflict:  # another controller has written the object since it was read
                    continue
                return None  # the object is deleted; the watch will report this
        raise WritePostponed(now + AGAIN, is_refused=True)

    async def _changed(self, resource: Resource, key: ObjectKey, change: Callable[[Raw], Raw | None]) -> Raw:
        api, at = self.cluster.api, (key.namespace, str(key))
        get = partial(api.get, resource, key.namespace, key.name)
        raw = await self.attempts.make(WrittenKind.STATUS, f"get {key.kind}", get, *at)
        status = change(raw)
        if status is None or status == (raw.get("status") or {}):
            return raw
        body = {**raw, "status": status}
        replace = partial(api.replace, resource, key.namespace, key.name, body, subresource="status")
        return await self.attempts.make(WrittenKind.STATUS, f"update {key.kind}", replace, *at, writes=True)


def _key(kind: Kind, raw: Raw) -> ObjectKey:
    metadata = raw.get("metadata") or {}
    return ObjectKey(kind, Namespace(metadata.get("namespace") or ""), str(metadata.get("name")))
