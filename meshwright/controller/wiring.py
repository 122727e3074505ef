"""Wiring of all parts of the server, before any of them runs."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from certs.custody import AuthorityWithLedger
from meshwright.controller.drivers import MeshDrivers
from meshwright.controller.issuing.issuing import IssuerAccess
from meshwright.controller.observing.reading import ServerReading
from meshwright.controller.parts.cluster_parts import ClusterParts, without_cluster
from meshwright.controller.parts.core import CoreParts, join_core
from meshwright.controller.parts.identity import IdentityParts, join_identity, proxy_issuing
from meshwright.controller.parts.monitors import MonitorParts, join_monitors
from meshwright.controller.parts.proxies import ProxyParts, join_proxies
from meshwright.controller.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts of the server."""

    core: CoreParts
    identity: IdentityParts
    in_cluster: ClusterParts
    proxies: ProxyParts
    monitors: MonitorParts

    @property
    def reading(self) -> ServerReading:
        """Return the reader of the running server's data for the admin pages."""
        core, monitors = self.core, self.monitors
        return ServerReading(
            delivery=core.delivery,
            sources=core.sources,
            opened=self.identity.opened,
            statuses=self.proxies.pages.statuses,
            late=monitors.watchdog.moments,
            clock=core.clock,
            read_settings=lambda: core.reloading.settings,
            listens=lambda: monitors.listening,
            ejections=monitors.ejections,
            observed=monitors.traffic,
        )

    def changed(self) -> None:
        """Start a new wave of delivery, and update the Pods' CA certificates, after a source has changed."""
        self.core.delivery.gathering.changed()
        if self.in_cluster.pod_roots is not None:
            self.in_cluster.pod_roots.noticed()


def join(
    settings: Settings,
    opened: AuthorityWithLedger,
    issuing: IssuerAccess,
    drivers: MeshDrivers,
    clock: Callable[[], datetime],
) -> Parts:
    """Make all parts; call this on the running event loop. Raises CertificateError and StartupError."""
    if settings.kubernetes:
        # The only import of a cluster's libraries, so servers without a cluster do not need their memory.
        from meshwright.controller.parts.cluster import join_in_cluster, reached

        cluster = reached(settings, clock)
        core = join_core(settings, opened, issuing, drivers, cluster.source, clock)
        certificates = proxy_issuing(core, opened)
        in_cluster = join_in_cluster(core, cluster, opened, issuing, drivers, certificates)
    else:
        core = join_core(settings, opened, issuing, drivers, None, clock)
        certificates = proxy_issuing(core, opened)
        in_cluster = without_cluster(core)
    proxies = join_proxies(drivers)
    identity = join_identity(core, opened, issuing, certificates, in_cluster, proxies)
    return Parts(core, identity, in_cluster, proxies, join_monitors(core, opened))
