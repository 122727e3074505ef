"""The daemon's questions to the API server: a Pod, the Pods of a node, and the state of its own DaemonSet."""

from collections.abc import Mapping, Sequence
from typing import Any

from meshwright.kube.api import Api
from meshwright.kube.builtin import DAEMON_SETS, PODS
from meshwright.kube.errors import KubeError, Reason
from meshwright.kubernetes.cni.responses import LookupFailed


class Cluster:
    """Look-ups of Pods in the API server, for the CNI daemon."""

    def __init__(self, api: Api, daemon_set: str) -> None:
        self._api = api
        self._namespace, _, self._name = daemon_set.partition("/")

    async def pod(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a Pod, or None if the Pod does not exist. Raises LookupFailed."""
        try:
            return await self._api.get(PODS, namespace, name)
        except KubeError as error:
            if error.reason is Reason.NOT_FOUND:
                return None
            raise LookupFailed(str(error)) from error

    async def pods_of(self, node: str) -> Sequence[Mapping[str, Any]]:
        """Return the Pods of a node. Raises LookupFailed."""
        try:
            result = await self._api.list(PODS, fields=f"spec.nodeName={node}")
        except KubeError as error:
            raise LookupFailed(str(error)) from error
        return list(result["items"])

    async def successor_reason(self) -> str:
        """Return why another daemon will follow this one on the node, or an empty text otherwise.

        Another daemon follows unless the DaemonSet is deleted or being deleted. A denied request counts as a
        deletion, because the permissions are deleted together with the DaemonSet. After any other failure the
        DaemonSet is assumed to exist, because a remaining entry in the network is harmless.
        """
        if not self._name:
            return ""
        try:
            result = await self._api.get(DAEMON_SETS, self._namespace, self._name)
        except KubeError as error:
            gone = (Reason.NOT_FOUND, Reason.FORBIDDEN, Reason.UNAUTHORIZED)
            return "" if error.reason in gone else f"the DaemonSet cannot be read: {error}"
        ends = (result.get("metadata") or {}).get("deletionTimestamp")
        return "" if ends else f"DaemonSet {self._namespace}/{self._name} still exists"
