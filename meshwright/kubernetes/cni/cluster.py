"""What the daemon asks a cluster: for a pod, and whether the DaemonSet that it is of is still meant to be."""

from collections.abc import Mapping, Sequence
from typing import Any

from meshwright.kube.api import Api
from meshwright.kube.builtin import DAEMON_SETS, PODS
from meshwright.kube.errors import KubeError, Reason
from meshwright.kubernetes.cni.responses import LookupFailed


class Cluster:
    """A cluster, as far as the daemon asks."""

    def __init__(self, api: Api, daemon_set: str) -> None:
        self._api = api
        self._namespace, _, self._name = daemon_set.partition("/")

    async def pod(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a pod, None where there is none of that name; raise LookupFailed."""
        try:
            return await self._api.get(PODS, namespace, name)
        except KubeError as error:
            if error.reason is Reason.NOT_FOUND:
                return None
            raise LookupFailed(str(error)) from error

    async def pods_of(self, node: str) -> Sequence[Mapping[str, Any]]:
        """Return the pods of a node; raise LookupFailed."""
        try:
            found = await self._api.list(PODS, fields=f"spec.nodeName={node}")
        except KubeError as error:
            raise LookupFailed(str(error)) from error
        return list(found["items"])

    async def comes_back(self) -> str:
        """Say why a daemon follows this one on its node; empty where none does.

        None does where the DaemonSet goes or has gone, or we may ask no longer: what permits it goes with it.
        One that cannot be asked for is believed to be there: an entry that stays harms nobody.
        """
        if not self._name:
            return ""
        try:
            found = await self._api.get(DAEMON_SETS, self._namespace, self._name)
        except KubeError as error:
            gone = (Reason.NOT_FOUND, Reason.FORBIDDEN, Reason.UNAUTHORIZED)
            return "" if error.reason in gone else f"the cluster cannot be asked: {error}"
        ends = (found.get("metadata") or {}).get("deletionTimestamp")
        return "" if ends else f"DaemonSet {self._namespace}/{self._name} is there"
