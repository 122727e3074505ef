"""The store of records that the settings name, before it is opened.

The libraries of a store are imported only if the settings name the store, to save the memory of the others.
"""

import os
import re
import secrets
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from certs.shared_records.custody import AUTHORITY, SEAL
from meshwright.controller.errors import StartupError
from meshwright.controller.kubernetes.home import home
from meshwright.controller.process.disk_space import StorePlace
from meshwright.controller.settings.settings import Settings
from meshwright.controller.settings.store_kind import StoreKind
from meshwright.controller.sharing.migration.unmoved_state import Unmoved, nothing_unmoved
from meshwright.records.contract import RecordStore, ReplicaId

SECRETS: Final = frozenset({SEAL, AUTHORITY})
"""Records with the data key and the CA; in Kubernetes they are data of one Secret."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A store of records, and the connection to enter on the store's event loop before the first call.

    `place` names the store for operators. `unmoved` returns why the empty store must not be used yet, because
    another state belongs into it.
    """

    records: RecordStore
    connection: AbstractAsyncContextManager[object]
    place: StorePlace
    unmoved: Unmoved = nothing_unmoved


def backend(settings: Settings, replica: ReplicaId, clock: Callable[[], datetime]) -> Backend:
    """Return the store in the settings. Raises StartupError, and ValueError for a directory."""
    match settings.store:
        case StoreKind.KUBERNETES:
            return _kubernetes(settings, replica, clock)
        case StoreKind.ETCD:
            return _etcd(settings, replica)
        case StoreKind.DIRECTORY:
            raise ValueError("a state directory is not shared")


def _kubernetes(settings: Settings, replica: ReplicaId, clock: Callable[[], datetime]) -> Backend:
    from meshwright.controller.sharing.migration.unmoved_claim import unmoved_claim
    from meshwright.kube.api import Api
    from meshwright.kube.connection.connection import find_connection
    from meshwright.kube.errors import KubeError
    from meshwright.records.kubernetes.store import KubernetesRecords

    try:
        api = Api(find_connection(settings.kubeconfig, settings.kube_context))
    except KubeError as error:
        raise StartupError(" ".join(str(error).split())) from error
    namespace = home(os.environ)
    records = KubernetesRecords(api, namespace, replica, clock, in_secret=SECRETS.__contains__)
    place = StorePlace(
        f"the records in namespace {namespace} of the Kubernetes API {api.server}",
        "check that the API server answers, and that this server may write records (`meshwright check`)",
    )
    return Backend(records, api, place, partial(unmoved_claim, api, namespace))


def _etcd(settings: Settings, replica: ReplicaId) -> Backend:
    from meshwright.controller.sharing.store.etcd_connection import EtcdConnection, etcd_client
    from meshwright.records.etcd.layout import Layout
    from meshwright.records.etcd.store import EtcdRecords

    client = etcd_client(settings)
    place = StorePlace(
        f"etcd at {', '.join(settings.etcd_endpoints)}",
        "check that most members of etcd run and have free space (`meshwright check`)",
    )
    records = EtcdRecords(client, Layout(settings.trust_domain), replica)
    return Backend(records, EtcdConnection(client), place)


def replica_id() -> ReplicaId:
    """Return a new name of this server: the host name with a random part, so a restart has another one."""
    host = re.sub("[^a-z0-9-]", "-", socket.gethostname().lower())[:63].strip("-") or "server"
    return ReplicaId(f"{host}-{secrets.token_hex(4)}")
