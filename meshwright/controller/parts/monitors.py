"""Parts for observing the server and the mesh, without decisions."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from certs.custody import LEDGER_FILE, AuthorityWithLedger
from meshwright.admin.http.heartbeat import Heartbeat
from meshwright.controller.errors import StartupError
from meshwright.controller.observing.taps import taps
from meshwright.controller.parts.core import CoreParts
from meshwright.controller.process.disk_space import StateRoom, StorePlace
from meshwright.controller.process.watchdog import Watchdog
from meshwright.enrolment.ejections import Ejections
from meshwright.tls.contents import UnusableTlsError
from meshwright.traffic.taps import Taps
from meshwright.traffic.traffic import Traffic

if TYPE_CHECKING:
    from meshwright.admin.spans.export import SpanExport


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorParts:
    """Heartbeat of the event loop, its watchdog, spans, and reports of proxies.

    `span_export` is `None` without a collector. `ejections` are the endpoints ejected by proxies, `traffic`
    the counted calls, `taps` the subscriptions to requests. `listening` has the server's addresses by
    purpose, once serving.
    """

    heartbeat: Heartbeat
    watchdog: Watchdog
    span_export: "SpanExport | None"
    taps: Taps
    traffic: Traffic
    ejections: Ejections
    disk_space: StateRoom
    listening: dict[str, str]


def join_monitors(
    core: CoreParts, opened: AuthorityWithLedger, store: StorePlace | None = None
) -> MonitorParts:
    """Connect the monitors with delivery. Raises StartupError.

    `store` is the store with the ledger of several servers, None for a ledger in the state directory.
    """
    settings, loop = core.settings, core.delivery.loop
    return MonitorParts(
        heartbeat=Heartbeat(time.monotonic, settings.heartbeat_seconds),
        watchdog=Watchdog(core.metrics, lambda: loop.doing, core.clock),
        span_export=_span_export(core),
        taps=taps(core.tapped, core.view, core.delivery.gathering.changed),
        traffic=Traffic(),
        ejections=Ejections(),
        disk_space=StateRoom(settings.state, settings.state / LEDGER_FILE, opened.ledger, store=store),
        listening={},
    )


def _span_export(core: CoreParts) -> "SpanExport | None":
    """Return the exporter of spans, or `None` without a collector.

    The gRPC messages of the exporter are then not imported.
    """
    settings = core.settings
    if settings.trace_collector is None or core.waves is None:
        return None
    from meshwright.admin.spans.export import SpanExport, collector_tls

    ca = settings.trace_collector_ca
    try:
        tls = collector_tls(ca) if settings.trace_collector_tls else None
    except UnusableTlsError as error:
        raise StartupError(f"trace_collector_ca: {error}") from error
    return SpanExport(core.waves, settings.trace_collector, tls, core.metrics, core.clock)
