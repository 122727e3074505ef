"""Stores of records in namespaces of the tests' cluster."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from meshwright.controller.sharing.store.backends import SECRETS
from meshwright.kube.api import Api
from meshwright.kube.lease import Terms
from meshwright.kube.reflector.pacing import Pacing
from meshwright.records.contract import ReplicaId
from meshwright.records.key import Key
from meshwright.records.kubernetes.store import KubernetesRecords
from meshwright.records.kubernetes.times import Times

TIMES: Final = Times(
    read=20.0,
    write=20.0,
    renew=0.2,
    lease=Terms(lasts=6, patience=4.0, every=0.2),
    pacing=Pacing(first=0.05, longest=0.5, steady=0.2, short=0.1),
)
"""Time limits for a busy machine, and renewals and pauses that tests do not wait for."""


class KubernetesStores:
    """Records in one namespace; those for which `in_secret` is true are data of the Secret."""

    def __init__(
        self, api: Api, namespace: str, in_secret: Callable[[Key], bool] = SECRETS.__contains__
    ) -> None:
        self._api, self._namespace, self._in_secret = api, namespace, in_secret

    def client(self, replica: str) -> KubernetesRecords:
        """Return the client of a replica."""
        return KubernetesRecords(
            self._api,
            self._namespace,
            ReplicaId(replica),
            lambda: datetime.now(UTC),
            TIMES,
            self._in_secret,
        )
