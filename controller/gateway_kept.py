"""Who keeps the certificate of the gateway that a MeshConfig names, put together."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from admin.metrics.registry import Metrics
from catalog.store.view import View
from controller.gateway_unwritten import NoGatewaySecret
from controller.issuing import Issuing, making
from controller.kept import StateFile
from controller.rotating import saying
from controller.settings import Settings
from delivery.assembly import Delivery

if TYPE_CHECKING:
    from controller.cluster import Cluster
    from reporting.reporter import Reporter


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
    from controller.gateway import GATEWAY_SECRETS, GatewaySecret

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
