"""Periodic measurements: gauges and failed handshakes."""

import asyncio
import time
from typing import Final

import structlog

from certs.keys.leaf import roots
from meshwright.admin.metrics.gauges import Gauges
from meshwright.controller.observing.gauges import GaugeBuilder, withheld_counts
from meshwright.controller.process.handshakes import FailedHandshakes
from meshwright.controller.process.memory import estimated
from meshwright.controller.wiring import Parts

MEASURE_SECONDS: Final = 2.0

_log = structlog.get_logger("controller.measuring")


class ServerMeter:
    """Meter of the server's parts; `degraded` are the remarks of the sources at the last measurement."""

    def __init__(self, parts: Parts, handshakes: FailedHandshakes) -> None:
        self._parts = parts
        self._handshakes = handshakes
        self.degraded: tuple[str, ...] = ()

    def object_count(self) -> int:
        """Return the estimated number of long-lived objects of the Python process."""
        view = self._parts.core.delivery.loop.state.view
        values = 0 if view is None else view.graph.size()
        if self._parts.in_cluster.webhook is not None:
            values += self._parts.in_cluster.webhook.values
        return estimated(values, self.streams())

    def streams(self) -> int:
        """Return the number of open streams."""
        return sum(self._parts.core.delivery.observer.streams.values())

    def _report_handshakes(self) -> None:
        for why, count in sorted(self._handshakes.counted().items()):
            self._parts.core.metrics.handshakes_failed(why.value, count)
        for summary in self._handshakes.due(time.monotonic()):
            last = summary.last
            _log.warning("handshakes failed", reason=last.why.value, said=last.message, count=summary.count)

    async def run(self) -> None:
        """Update gauges and metrics of failed handshakes every MEASURE_SECONDS, until cancelled."""
        core, gauging = self._parts.core, GaugeBuilder()
        while True:
            core.delivery.observer.report()
            self._report_handshakes()
            # Probes run in another thread, but sources may only be read on the event loop.
            self.degraded = core.sources.remarks()
            # Counted in slices first, because `gauges` runs without a break.
            await gauging.count(core.delivery.loop.state.published.snapshots)
            core.metrics.measured(self._gauges(gauging))
            fresh = (source.freshness() for source in core.sources.all)
            core.metrics.watched((watch for freshness in fresh for watch in freshness.watches), core.clock())
            await asyncio.sleep(MEASURE_SECONDS)

    def _gauges(self, gauging: GaugeBuilder) -> Gauges:
        core, identity, monitors = self._parts.core, self._parts.identity, self._parts.monitors
        delivery = core.delivery
        return gauging.gauges(
            delivery.loop.state,
            delivery.observer.streams,
            self._parts.proxy_counts(),
            core.sources.all,
            len(delivery.certificates.certificates),
            monitors.heartbeat.take_worst(),
            core.clock(),
            withheld=withheld_counts(delivery.quarantine.findings.counts()),
            unacked_age=delivery.history.unanswered_age(time.monotonic()),
            state_failing=monitors.disk_space.trouble is not None,
            ledger_unwritten=identity.opened.ledger.unwritten,
            running_out=len(delivery.certificates.running_out(core.clock())),
            trusted_roots=len(roots(identity.issuing.opened.issuer.trust_bundle())),
            root_stage=0 if identity.roots is None else identity.roots.stage,
            shared_identities=len(delivery.sharing.proxies()),
            reporting_proxies=monitors.traffic.reporting(time.monotonic()),
            ejected_endpoints=monitors.ejections.count(core.clock()),
        )
