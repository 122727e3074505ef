"""What is counted from time to time, and not where it happens: gauges, and handshakes that failed."""

import asyncio
import time
from typing import Final

import structlog

from certs.keys.leaf import roots
from meshwright.controller.observing.gauges import Gauging, withheld_counts
from meshwright.controller.process.handshakes import FailedHandshakes
from meshwright.controller.process.memory import estimated
from meshwright.controller.wiring import Parts

MEASURE_SECONDS: Final = 2.0

_log = structlog.get_logger("controller.measuring")


class Measuring:
    """Looks at the server's parts; `degraded` is what its sources said of themselves the last time."""

    def __init__(self, parts: Parts, handshakes: FailedHandshakes) -> None:
        self._parts = parts
        self._handshakes = handshakes
        self.degraded: tuple[str, ...] = ()

    def held(self) -> int:
        """Return how many bytes are held that stay, estimated."""
        view = self._parts.delivery.loop.state.view
        values = 0 if view is None else view.graph.size()
        if self._parts.webhook is not None:
            values += self._parts.webhook.values
        return estimated(values, self.streams())

    def streams(self) -> int:
        """Return how many streams there are."""
        return sum(self._parts.delivery.observer.streams.values())

    def _report_handshakes(self) -> None:
        for why, count in sorted(self._handshakes.counted().items()):
            self._parts.metrics.handshakes_failed(why.value, count)
        for each in self._handshakes.due(time.monotonic()):
            last = each.last
            _log.warning("handshakes failed", reason=last.why.value, said=last.said, count=each.count)

    async def run(self) -> None:
        """Measure for good."""
        parts, gauging = self._parts, Gauging()
        while True:
            parts.delivery.observer.report()
            self._report_handshakes()
            # Probes ask in a thread of their own, and sources are looked at on the event loop.
            self.degraded = parts.sources.remarks()
            await gauging.count(parts.delivery.loop.state.published.snapshots)
            parts.metrics.measured(
                gauging.gauges(
                    parts.delivery.loop.state,
                    parts.delivery.observer.streams,
                    parts.delivery.registry.counts(),
                    parts.sources.all,
                    len(parts.delivery.certificates.certificates),
                    parts.heartbeat.take_worst(),
                    parts.clock(),
                    withheld=withheld_counts(parts.delivery.quarantine.findings.counts()),
                    unacked_age=parts.delivery.history.unanswered_age(time.monotonic()),
                    state_failing=bool(parts.room.trouble),
                    ledger_unwritten=parts.opened.ledger.unwritten,
                    running_out=len(parts.delivery.certificates.running_out(parts.clock())),
                    trusted_roots=len(roots(parts.issuing.opened.issuer.trust_bundle())),
                    root_stage=0 if parts.roots is None else parts.roots.stage,
                    shared_identities=len(parts.delivery.sharing.found()),
                    reporting_proxies=parts.traffic.reporting(time.monotonic()),
                    ejected_endpoints=parts.ejections.count(parts.clock()),
                )
            )
            fresh = (each.freshness() for each in parts.sources.all)
            parts.metrics.watched((watch for each in fresh for watch in each.watches), parts.clock())
            await asyncio.sleep(MEASURE_SECONDS)
