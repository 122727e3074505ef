"""Assembly of the status reporter from its parts, before any task runs."""

import socket
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Final

from catalog.store.gateway import ROUTE_KINDS
from meshwright.delivery.assembly import Delivery
from meshwright.kube.api import Api
from meshwright.kube.discovery import served
from meshwright.kube.lease import Lease
from meshwright.kubernetes.status.attempts import Meter
from meshwright.kubernetes.status.cluster import Cluster, Kinds
from meshwright.kubernetes.status.conditions.osm_words import WORDED
from meshwright.kubernetes.status.event import EventReporter
from meshwright.kubernetes.status.object_status import ObjectStatusTable
from meshwright.kubernetes.status.reporter import Reporter, ReportLeadership
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.kubernetes.status.statements import WITH_STATUS
from meshwright.kubernetes.status.writer import Decisions, Writer
from meshwright.mesh.kinds import BACKEND_TLS_POLICY, GATEWAY, GATEWAY_CLASS, LISTENER_SET
from meshwright.mesh.objects import ObjectKey

LEASE: Final = "meshwright-reporting"

GATEWAY_KINDS: Final = (GATEWAY_CLASS, GATEWAY, LISTENER_SET)
POLICY_KINDS: Final = (BACKEND_TLS_POLICY,)


def reporter(
    api: Api,
    delivery: Delivery,
    meter: Meter,
    clock: Callable[[], datetime],
    home: str,
    namespaces: tuple[str, ...] = (),
    leading: ReportLeadership | None = None,
) -> Reporter:
    """Return a reporter for the objects in `namespaces` of a cluster; empty means all namespaces.

    `home` is the namespace of the control plane, which holds the Lease. Servers that share the Lease take
    turns: only the holder writes. With `leading`, the leader among the servers of one mesh writes instead.
    """
    instance = socket.gethostname()  # the Pod's name in Kubernetes
    # The holder must be unique per process, because machines may have equal host names.
    lease: ReportLeadership = leading or Lease(api, home, LEASE, f"{instance}_{uuid.uuid4().hex[:8]}", clock)
    standing, kinds = (
        ObjectStatusTable(api.name, WITH_STATUS, WORDED, ROUTE_KINDS, GATEWAY_KINDS, POLICY_KINDS),
        Kinds(lambda: served(api)),
    )

    def writer(progress: Callable[[ObjectKey], Progress | None], decisions: Decisions) -> Writer:
        cluster = Cluster(api, kinds.resource, standing, clock, EventReporter(instance, home))
        kinds_with_status = sorted(WITH_STATUS)
        return Writer(
            cluster,
            progress,
            decisions,
            meter,
            status_kinds=kinds_with_status,
            route_kinds=ROUTE_KINDS,
            gateway_kinds=GATEWAY_KINDS,
            policy_kinds=POLICY_KINDS,
            namespaces=namespaces,
        )

    return Reporter(delivery, standing, lease, writer)
