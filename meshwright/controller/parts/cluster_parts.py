"""Record of the parts for a cluster, and the contents on a server without one.

The types are imported for type checkers only, so a server without a cluster does not load their libraries.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from meshwright.controller.gateway.not_written import NoGatewaySecret
from meshwright.controller.parts.core import CoreParts
from meshwright.delivery.assembly import Delivery
from meshwright.enrolment.proofs.contract import Proof
from meshwright.mesh.problems.problem import Problems

if TYPE_CHECKING:
    from meshwright.controller.kubernetes.cluster import Cluster
    from meshwright.controller.kubernetes.webhook import Webhook
    from meshwright.kubernetes.gateways.keeper import GatewayObjects
    from meshwright.kubernetes.injection.credentials.roots_writer import PodRoots
    from meshwright.kubernetes.status.reporter import Reporter
    from meshwright.records.contract import Epoch
    from meshwright.replicas.leadership import Leadership


class GatewayKeeper(Protocol):
    """Controller of the gateway certificate, or a replacement without a cluster."""

    @property
    def end(self) -> datetime | None:
        """Return the end of the gateway certificate's validity, or `None` without a certificate."""

    async def run(self) -> None:
        """Issue, renew and remove the gateway certificate as the MeshConfig requires, until cancelled."""


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """Parts of a cluster; each optional one is `None` if unused.

    The mesh is read from `cluster`. `reporter` writes conditions and Events for owners of objects.
    `pod_roots` writes the ConfigMaps with the CA certificates for joining Pods. `proofs` are the kinds of
    enrolment proof that the cluster judges, by name. `leadership` is that among several servers of one mesh,
    of which only the leader writes the objects that all servers share. `gateways` keeps the objects that run
    the proxies of Gateways.
    """

    cluster: "Cluster | None"
    webhook: "Webhook | None"
    pod_roots: "PodRoots | None"
    reporter: "Reporter | None"
    gateway: GatewayKeeper
    proofs: Mapping[str, Callable[[], Proof]]
    leadership: "Leadership | None" = None
    gateways: "GatewayObjects | None" = None

    def waited_for(self) -> tuple[str, ...]:
        """Return the webhook registrations still missing in the cluster."""
        return () if self.webhook is None else self.webhook.waited_for()

    def remarks(self) -> tuple[str, ...]:
        """Return remarks for operators about webhooks, CA certificates of Pods, and objects of gateways."""
        webhook = () if self.webhook is None else self.webhook.remarks()
        pods = () if self.pod_roots is None else self.pod_roots.remarks()
        gateways = () if self.gateways is None else self.gateways.remarks()
        return (*webhook, *pods, *gateways)

    def works(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of all tasks of these parts."""
        for part in (self.reporter, self.webhook, self.pod_roots, self.gateways):
            if part is not None:
                yield from part.works()
        yield "gateway certificate", self.gateway.run()
        if self.leadership is not None:
            yield "objects of the leader", self.leadership.lead(self._look_as_leader)

    async def _look_as_leader(self, epoch: "Epoch") -> None:
        """Check the objects in the cluster at the beginning of a term, then wait until it ends."""
        del epoch  # the API server compares
        if self.webhook is not None:
            self.webhook.look_at_cluster()
        if self.pod_roots is not None:
            self.pod_roots.look()
        if self.gateways is not None:
            self.gateways.changed()
        await asyncio.Event().wait()


def without_cluster(core: CoreParts) -> ClusterParts:
    """Return the parts of a server without a cluster: only a reporter of problems with a gateway."""
    gateway = NoGatewaySecret(core.view, saying(core.delivery, None, "gateway"))
    return ClusterParts(None, None, None, None, gateway, {})


def saying(
    delivered: Delivery, reporter: "Reporter | None", reporter_name: str
) -> Callable[[Problems], None]:
    """Return a reporter of problems between waves, named `reporter_name`: to the log, and to owners."""

    def say(problems: Problems) -> None:
        all_problems = delivered.loop.state.all_problems
        all_problems.report(reporter_name, None, problems)
        if all_problems.log() and reporter is not None:
            reporter.changed()

    return say
