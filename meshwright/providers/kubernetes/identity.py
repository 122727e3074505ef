"""Identity of the cluster behind an API server, to recognise saved objects of another cluster.

Names do not identify a cluster: kubeadm calls every cluster `kubernetes`, and kubeconfigs contain arbitrary
names. The UID of the namespace kube-system is created with a cluster and ends with it, but only the API
server can return the UID. Until then, a cluster is identified by its name, its URL and its CA.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Self

import structlog

from meshwright.kube.api import Api
from meshwright.kube.errors import KubeError, Nonsense, Reason
from meshwright.mesh.kinds import NAMESPACE
from meshwright.providers.kubernetes.resources import CORE

SYSTEM: Final = "kube-system"
"""A namespace of every cluster."""

_REFUSED: Final = frozenset({Reason.FORBIDDEN, Reason.NOT_FOUND, Reason.NONSENSE})
"""Reasons for which a reachable server does not return the UID."""

_log = structlog.get_logger("providers.kubernetes.source")


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a cluster: name, digest of URL and CA, and UID (empty if unknown)."""

    name: str = ""
    server: str = ""
    uid: str = ""

    def may_be(self, other: Self) -> bool:
        """Return whether both may be the same cluster: same name, URL and CA, and not two different UIDs."""
        alike = (self.name, self.server) == (other.name, other.server)
        return alike and (self.uid == other.uid or not (self.uid and other.uid))


class ClusterIdentifier:
    """Client that requests a cluster's UID until it has an answer.

    `known` is the identity so far. `has_result` is True after the first answer or failure. `refusal` is the
    reason if the server is reachable but refuses.
    """

    def __init__(self, api: Api, *, again: timedelta, refused: timedelta) -> None:
        self._api = api
        self._again = again
        self._refused = refused
        self.known = Identity(api.name, api.fingerprint)
        self.has_result = False
        self.refusal = ""

    async def run(self, notify: Callable[[], None]) -> None:
        """Request the cluster's UID until known; call `notify` after each answer and each failure."""
        while not self.known.uid:
            again = self._again
            try:
                uid = await uid_of(self._api)
            except KubeError as error:
                if error.reason in _REFUSED:
                    again = self._refused
                    self._refuse(str(error))
            else:
                self.known, self.refusal = replace(self.known, uid=uid), ""
            self.has_result = True
            notify()
            if not self.known.uid:
                await asyncio.sleep(again.total_seconds())

    def _refuse(self, reason: str) -> None:
        if not self.refusal:
            _log.warning(
                "cluster UID cannot be read; the cluster is identified by its address only", reason=reason
            )
        self.refusal = reason


async def uid_of(api: Api) -> str:
    """Return the UID of a cluster, which is the UID of its namespace kube-system; raises KubeError."""
    raw = await api.get(CORE[NAMESPACE], None, SYSTEM)
    metadata = raw.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    if not isinstance(uid, str) or not uid:
        raise Nonsense(f"the Namespace {SYSTEM} lacks metadata.uid")
    return uid
