"""Objects of the kinds with a status, as the API server has them, for the writers of statuses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from meshwright.kube.resource import Resource
from meshwright.kubernetes.status.attempts import Attempts, WrittenKind
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey

Raw = Mapping[str, Any]
"""An object as the API server has it."""


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


def _key(kind: Kind, raw: Raw) -> ObjectKey:
    metadata = raw.get("metadata") or {}
    return ObjectKey(kind, Namespace(metadata.get("namespace") or ""), str(metadata.get("name")))
