"""Parts for all others: settings, sources, and delivery."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from catalog.store.view import View
from certs.custody import AuthorityWithLedger
from meshwright.admin.metrics.registry import Metrics
from meshwright.controller.delivery import delivering
from meshwright.controller.drivers import MeshDrivers
from meshwright.controller.issuing.issuing import IssuerAccess
from meshwright.controller.settings.reload import SettingsReloader
from meshwright.controller.settings.settings import Settings
from meshwright.controller.sources import sources_of
from meshwright.controller.state_files import DNS_ANSWERS, VERDICTS, PersistentValue, StateFile
from meshwright.delivery.assembly import Delivery
from meshwright.delivery.history.open_waves import OpenWaves
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.providers.contract import Source
from meshwright.providers.sources import Sources
from meshwright.traffic.taps import TapTable


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreParts:
    """Settings, clock, metrics, sources and delivery.

    `settings` are the settings at the start, and `reloading` has the settings in force. `verdicts` survive a
    restart. `tapped` are the requests to be reported by sidecars. `waves` follows each wave, `None` without a
    collector of traces.
    """

    settings: Settings
    reloading: SettingsReloader
    clock: Callable[[], datetime]
    metrics: Metrics
    sources: Sources
    verdicts: PersistentValue[tuple[Verdict, ...]]
    tapped: TapTable
    waves: OpenWaves | None
    delivery: Delivery

    def view(self) -> View | None:
        """Return the newest view, `None` before the first wave."""
        return self.delivery.loop.state.view


def join_core(
    settings: Settings,
    opened: AuthorityWithLedger,
    issuing: IssuerAccess,
    drivers: MeshDrivers,
    cluster: Source | None,
    clock: Callable[[], datetime],
    shared_verdicts: PersistentValue[tuple[Verdict, ...]] | None = None,
) -> CoreParts:
    """Make the core parts: connect the sources with delivery.

    `cluster` is the cluster's source, if any. `shared_verdicts` are those of all servers, `None` for the only
    server. Raises ProviderError.
    """
    metrics, tapped = Metrics(), TapTable()
    verdicts = shared_verdicts or StateFile(settings.state, VERDICTS)
    sources = sources_of(settings, cluster, StateFile(settings.state, DNS_ANSWERS), clock)
    waves = None if settings.trace_collector is None else OpenWaves()
    delivery = delivering(
        settings,
        opened,
        issuing,
        drivers,
        sources,
        verdicts,
        tapped,
        metrics,
        clock,
        waves,
        has_others=shared_verdicts is not None,
    )
    return CoreParts(
        settings=settings,
        reloading=SettingsReloader(settings),
        clock=clock,
        metrics=metrics,
        sources=sources,
        verdicts=verdicts,
        tapped=tapped,
        waves=waves,
        delivery=delivery,
    )
