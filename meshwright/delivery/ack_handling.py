"""Handling of ACKs and NACKs: after a NACK the proxy gets a reduced snapshot without a wave."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from datetime import datetime

from catalog.policy.units import UnitId
from meshwright.delivery.publisher import Publisher
from meshwright.delivery.quarantine.record import Moment
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.timing.time_slices import Slices
from meshwright.delivery.wave import Wave, rejection_cause
from meshwright.mesh.objects import ObjectKey
from xds.cache import NodeKey
from xds.protocol.resources.resource import Reference
from xds.protocol.wire import Rejection, Response


class Answers:
    """Pass the proxies' answers to the quarantine, and publish its decisions.

    All methods must be called on the event loop. `changed` requests a wave, which reports the rejections as
    problems.
    """

    def __init__(
        self,
        publishing: Publisher,
        changed: Callable[[], None],
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._publishing = publishing
        self._quarantine = publishing.quarantine
        self._changed = changed
        self._clock = clock
        self._now = monotonic
        self._withheld, self._judged = asyncio.Event(), asyncio.Event()
        # The verdicts loaded at the start are on disk already. Proxies are served before `keeping` runs.
        self._kept = self._quarantine.findings.verdicts()

    def answered(
        self,
        node: NodeKey,
        response: Response,
        rejection: Rejection | None,
        changed: frozenset[ObjectKey] = frozenset(),
        stream: int | None = None,
    ) -> None:
        """Handle an ACK (`rejection` is `None`) or a NACK; after a NACK publish a reduced snapshot at once.

        `changed` are the objects behind the rejected response. `stream` is given if several proxies share the
        identity of `node`; the reduction then applies to this stream alone.
        """
        # The journal may hold older ACKs of this proxy and its group. They decide which versions count as
        # good.
        self._publishing.settle_with(node)
        step = self._quarantine.answered(node, response, rejection, self._moment, changed, stream)
        self._serve(step, node)

    def has_record(self, stream: int) -> bool:
        """Return whether a stream has rejections of its own."""
        return self._quarantine.streams.find(stream) is not None

    def takes_calls(self, node: NodeKey, response: Response) -> bool:
        """Return whether a proxy has accepted all inbound listeners after acknowledging this response."""
        return self._quarantine.takes_calls(node, response)

    def closed(self, stream: int) -> None:
        """Drop the record of rejected resources of an ended stream."""
        if self._quarantine.streams.closed(stream):
            self._serve(Step(), "")

    def decides(self, node: NodeKey) -> bool:
        """Return whether an ACK of this proxy can change the served resources: only after a rejection."""
        return self._quarantine.decides(node)

    def opened(self, node: NodeKey) -> None:
        """Handle a new stream of a proxy: offer the rejected resources again."""
        # Only proxies with rejections, because writing the journal costs time in a storm of connections.
        if self._quarantine.decides(node):
            self._publishing.settle_with(node)
            self._withheld.set()  # only a connected proxy has a time for the next retry
        self._serve(self._quarantine.opened(node), node)

    def heard(self, node: NodeKey, found: tuple[Verdict, ...], ended: frozenset[UnitId]) -> None:
        """Take the verdicts on a proxy that other servers have found, and end those that they have ended."""
        self._publishing.settle_with(node)
        self._serve(self._quarantine.heard(node, found, ended), node)

    def retry(self, node: NodeKey) -> tuple[Reference, ...]:
        """Offer a proxy the rejected resources again; return them as (type URL, name), sorted."""
        rejected = self._quarantine.findings.rejected_by(node)
        self._publishing.settle_with(node)
        self._serve(self._quarantine.retry(node), node)
        return rejected

    def judged(self) -> None:
        """Wake the task `keeping`, which stores the verdicts on rejected units of policy."""
        self._judged.set()

    async def retrying(self) -> None:
        """Offer rejected resources to their proxies again whenever a retry is due, until cancelled."""
        while True:
            due = self._quarantine.due()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if due is None else max(0.0, due - self._now())):
                    await self._withheld.wait()
            self._withheld.clear()
            if due is not None and due <= (now := self._now()):
                # ACKs in the journal may show by now that a resource is good.
                await self._publishing.settle_all(Slices())
                self._serve(self._quarantine.on_time(now), "proxies")

    async def keeping(self, keep: Callable[[tuple[Verdict, ...]], None]) -> None:
        """Call `keep` in a thread with the verdicts whenever they have changed, until cancelled.

        `keep` writes the verdicts to disk, so a restarted server still excludes the resources at fault.
        """
        while True:
            await self._judged.wait()
            self._judged.clear()
            if (verdicts := self._quarantine.findings.verdicts()) != self._kept:
                self._kept = verdicts
                await asyncio.to_thread(keep, verdicts)

    def _moment(self) -> Moment:
        return Moment(self._now(), self._clock())

    def _serve(self, step: Step | None, proxy_name: str) -> None:
        if step is None:
            return
        self._publishing.lessen()
        if step:
            now = self._now()
            wave = Wave(0, (rejection_cause(proxy_name),), 0, now, now, self._clock())
            self._publishing.withhold(wave, step)
        self._withheld.set()
        self._judged.set()
        # The wave reports the rejection as a problem of the object at fault. The snapshot above does not wait
        # for it.
        self._changed()
