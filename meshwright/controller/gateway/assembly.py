"""Who keeps the certificate of the gateway that a MeshConfig names, put together."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from catalog.store.view import View
from meshwright.admin.metrics.registry import Metrics
from meshwright.controller.gateway.not_written import NoGatewaySecret
from meshwright.controller.issuing.issuing import Issuing, making
from meshwright.controller.roots.rotation import saying
from meshwright.controller.settings.settings import Settings
from meshwright.controller.state_files import StateFile
from meshwright.delivery.assembly import Delivery

if TYPE_CHECKING:
    from meshwright.controller.kubernetes.cluster import Cluster
    from meshwright.kubernetes.status.reporter import Reporter


class GatewayKept(Protocol):
    """Keeps it, or says that nobody can."""

    @property
    def end(self) -> datetime | None:
        """Return when the certificate ends; None where there is none."""

    async def run(self) -> None:
        """Keep it right until cancelled."""


def gateway_kept(
    settings: Settings,
    cluster: "Cluster | None",
    signs: Issuing,
    delivered: Delivery,
    reporter: "Reporter | None",
    metrics: Metrics,
    clock: Callable[[], datetime],
) -> GatewayKept:
    """Return who keeps it in the cluster, where there is one."""

    def view() -> View | None:
        return delivered.loop.state.view

    say = saying(delivered, reporter, "gateway")
    if cluster is None:
        return NoGatewaySecret(view, say)
    from meshwright.controller.gateway.certificate import GATEWAY_SECRETS, GatewaySecret

    return GatewaySecret(
        cluster.api,
        cluster.home,
        signs.opened.issuer,
        making(settings),
        view,
        StateFile(settings.state, GATEWAY_SECRETS),
        lambda: metrics.issued("gateway", signs.opened.kind.value),
        say,
        clock,
    )
