"""Reporting, put together; nothing runs yet."""

import socket
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Final

from meshwright.delivery.assembly import Delivery
from meshwright.kube.api import Api
from meshwright.kube.discovery import served
from meshwright.kube.lease import Lease
from meshwright.kubernetes.status.attempts import Meter
from meshwright.kubernetes.status.cluster import Cluster, Kinds
from meshwright.kubernetes.status.conditions.osm_words import WORDED
from meshwright.kubernetes.status.event import EventReporter
from meshwright.kubernetes.status.object_status import ObjectStatusTable
from meshwright.kubernetes.status.reporter import Reporter
from meshwright.kubernetes.status.rollouts import Rollouts
from meshwright.kubernetes.status.statements import WITH_STATUS
from meshwright.kubernetes.status.writer import Writer

LEASE: Final = "meshwright-reporting"


def reporter(
    api: Api,
    delivery: Delivery,
    meter: Meter,
    clock: Callable[[], datetime],
    home: str,
    namespaces: tuple[str, ...] = (),
) -> Reporter:
    """Make what tells the owners of a cluster's objects what became of them, in all namespaces or in these.

    `home` is the control plane's own namespace, where its Lease is: those that share it are one.
    """
    instance = socket.gethostname()  # in a Pod its name
    # No two processes may be one holder, whatever their machines are called.
    lease = Lease(api, home, LEASE, f"{instance}_{uuid.uuid4().hex[:8]}", clock)
    standing, kinds = ObjectStatusTable(api.name, WITH_STATUS, WORDED), Kinds(lambda: served(api))

    def writer(rollouts: Rollouts) -> Writer:
        cluster = Cluster(api, kinds.resource, standing, clock, EventReporter(instance, home))
        kinds_with_status = sorted(WITH_STATUS)
        return Writer(
            cluster, rollouts.progress, meter, status_kinds=kinds_with_status, namespaces=namespaces
        )

    return Reporter(delivery, standing, lease, writer)
