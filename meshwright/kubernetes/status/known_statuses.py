"""Statuses of objects as they were last read from the cluster, or written there."""

from typing import Generic, TypeVar

from meshwright.kube.resource import Raw
from meshwright.mesh.objects import ObjectKey

T = TypeVar("T")


class KnownStatuses(Generic[T]):
    """The known status of each object, by key and UID.

    An object that is deleted and created again under its name has another UID, and no known status: whoever
    compared it with the earlier object's status would never write it.
    """

    def __init__(self) -> None:
        self._statuses: dict[ObjectKey, tuple[str, T]] = {}

    def get(self, key: ObjectKey, uid: str) -> T | None:
        """Return the known status of an object; None if it is unknown, or that of an earlier object."""
        known = self._statuses.get(key)
        return None if known is None or known[0] != uid else known[1]

    def keep(self, key: ObjectKey, uid: str, status: T) -> None:
        """Keep the status of an object in place of an earlier one."""
        self._statuses[key] = uid, status

    def forget(self, key: ObjectKey) -> None:
        """Forget the status of an object, if it is known."""
        self._statuses.pop(key, None)


def uid_of(raw: Raw) -> str:
    """Return the UID of an object as the API server has it; empty if it has none."""
    return str((raw.get("metadata") or {}).get("uid") or "")
