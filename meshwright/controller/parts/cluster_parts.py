"""The parts that need a Kubernetes cluster, and what a server has in their place without one.

Their types are imported for type checkers only: without a cluster their libraries take no memory.
"""

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
    from meshwright.kubernetes.injection.credentials.roots_writer import PodRoots
    from meshwright.kubernetes.status.reporter import Reporter


class GatewayKeeper(Protocol):
    """Keeps the certificate of the gateway that a MeshConfig names, or says that nobody can."""

    @property
    def end(self) -> datetime | None:
        """Return when the certificate ends; None where there is none."""

    async def run(self) -> None:
        """Keep it right until cancelled."""


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """The parts that a cluster has.

    `cluster` is that from which the mesh is read, `reporter` tells the owners of its objects what became of
    them, `pod_roots` keeps the ConfigMaps by which pods join; each is None where there is none. `proofs` are
    the kinds of proof of enrolment that the cluster judges, by name.
    """

    cluster: "Cluster | None"
    webhook: "Webhook | None"
    pod_roots: "PodRoots | None"
    reporter: "Reporter | None"
    gateway: GatewayKeeper
    proofs: Mapping[str, Callable[[], Proof]]

    def waited_for(self) -> tuple[str, ...]:
        """Return what the cluster is yet to be told for the first time."""
        return () if self.webhook is None else self.webhook.waited_for()

    def remarks(self) -> tuple[str, ...]:
        """Return what is not as it should be."""
        webhook = () if self.webhook is None else self.webhook.remarks()
        pods = () if self.pod_roots is None else self.pod_roots.remarks()
        return (*webhook, *pods)

    def works(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield what runs as long as the server does, by name."""
        for part in (self.reporter, self.webhook, self.pod_roots):
            if part is not None:
                yield from part.works()
        yield "gateway certificate", self.gateway.run()


def without_cluster(core: CoreParts) -> ClusterParts:
    """Return the record of a server that reads no cluster."""
    gateway = NoGatewaySecret(core.view, saying(core.delivery, None, "gateway"))
    return ClusterParts(None, None, None, None, gateway, {})


def saying(delivered: Delivery, reporter: "Reporter | None", who: str) -> Callable[[Problems], None]:
    """Return what tells the problems that `who` finds between waves: in the log, and to objects' owners."""

    def say(problems: Problems) -> None:
        said = delivered.loop.state.said
        said.say(who, None, problems)
        if said.log() and reporter is not None:
            reporter.changed()

    return say
