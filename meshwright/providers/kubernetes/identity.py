"""Which cluster it is that answers: kubeadm calls each `kubernetes`, and kubeconfigs say what they like.

The UID of the namespace kube-system is made with a cluster and ends with it. It can be had of its API server
alone; until that has said it, a cluster is told by how it is reached: its name, its URL, and its CA.
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
"""The namespace that every cluster has."""

_REFUSED: Final = frozenset({Reason.FORBIDDEN, Reason.NOT_FOUND, Reason.NONSENSE})
"""Why a server that answers does not say which cluster it is."""

_log = structlog.get_logger("providers.kubernetes.source")


@dataclass(frozen=True, slots=True)
class Identity:
    """A cluster: its name here, a digest of how it is reached, and its UID, empty where that is not known."""

    name: str = ""
    server: str = ""
    uid: str = ""

    def may_be(self, other: Self) -> bool:
        """Say whether two may be one: reached in one way, and not known to have another UID."""
        alike = (self.name, self.server) == (other.name, other.server)
        return alike and (self.uid == other.uid or not (self.uid and other.uid))


class ClusterIdentifier:
    """Asks a cluster which it is until it has said so.

    `known` is as much as is known; `has_asked` says whether there was an answer, or will be none soon;
    `refusal` is why a server that answers does not say it.
    """

    def __init__(self, api: Api, *, again: timedelta, refused: timedelta) -> None:
        self._api = api
        self._again = again
        self._refused = refused
        self.known = Identity(api.name, api.fingerprint)
        self.has_asked = False
        self.refusal = ""

    async def run(self, told: Callable[[], None]) -> None:
        """Ask; `told` is called after each answer, and after each failure."""
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
            self.has_asked = True
            told()
            if not self.known.uid:
                await asyncio.sleep(again.total_seconds())

    def _refuse(self, said: str) -> None:
        if not self.refusal:
            _log.warning(
                "cluster UID cannot be read; the cluster is identified by its address only", reason=said
            )
        self.refusal = said


async def uid_of(api: Api) -> str:
    """Return a cluster's UID; raise KubeError."""
    raw = await api.get(CORE[NAMESPACE], None, SYSTEM)
    metadata = raw.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    if not isinstance(uid, str) or not uid:
        raise Nonsense(f"the Namespace {SYSTEM} has no metadata.uid")
    return uid
