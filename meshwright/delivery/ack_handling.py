"""What proxies answer, and what each of them is served for it at once: a rejection waits for no wave."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from datetime import datetime

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
    """Takes proxies' answers to the quarantine, and publishes what it decides; on the event loop.

    `changed` asks for a wave, which says what is rejected.
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

    def answered(
        self,
        node: NodeKey,
        response: Response,
        rejection: Rejection | None,
        changed: frozenset[ObjectKey] = frozenset(),
        stream: int | None = None,
    ) -> None:
        """Take a proxy's answer; a proxy that rejects something is served without it at once.

        `changed` are the objects that led to what it rejects. `stream` is given where several proxies
        share the identity.
        """
        self._publishing.settle_with(node)
        step = self._quarantine.answered(node, response, rejection, self._moment, changed, stream)
        self._serve(step, node)

    def has_record(self, stream: int) -> bool:
        """Return whether a stream has rejected something that concerns it alone."""
        return self._quarantine.streams.find(stream) is not None

    def takes_calls(self, node: NodeKey, response: Response) -> bool:
        """Return whether a proxy that acknowledges this response has all of its inbound listeners."""
        return self._quarantine.takes_calls(node, response)

    def closed(self, stream: int) -> None:
        """Drop what is withheld from a stream that has ended."""
        if self._quarantine.streams.closed(stream):
            self._serve(Step(), "")

    def decides(self, node: NodeKey) -> bool:
        """Say whether something may follow from what a proxy accepts: it has rejected something."""
        return self._quarantine.decides(node)

    def opened(self, node: NodeKey) -> None:
        """Take note of a proxy's new stream: it is offered again what was rejected as a resource."""
        if self._quarantine.decides(node):
            self._publishing.settle_with(node)
        self._serve(self._quarantine.opened(node), node)

    def retry(self, node: NodeKey) -> tuple[Reference, ...]:
        """Offer a proxy again what it rejected; return in which resources that is, sorted."""
        rejected = self._quarantine.findings.rejected_by(node)
        self._publishing.settle_with(node)
        self._serve(self._quarantine.retry(node), node)
        return rejected

    def judged(self) -> None:
        """Take note that what is at fault may be other than before."""
        self._judged.set()

    async def retrying(self) -> None:
        """Offer again what is withheld whenever that is due, until cancelled."""
        while True:
            due = self._quarantine.due()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if due is None else max(0.0, due - self._now())):
                    await self._withheld.wait()
            self._withheld.clear()
            if due is not None and due <= (now := self._now()):
                await self._publishing.settle_all(Slices())
                self._serve(self._quarantine.on_time(now), "proxies")

    async def keeping(self, keep: Callable[[tuple[Verdict, ...]], None]) -> None:
        """Have `keep` write down in a thread what is at fault for certain, when it is other."""
        kept = self._quarantine.findings.verdicts()
        while True:
            await self._judged.wait()
            self._judged.clear()
            if (found := self._quarantine.findings.verdicts()) != kept:
                kept = found
                await asyncio.to_thread(keep, found)

    def _moment(self) -> Moment:
        return Moment(self._now(), self._clock())

    def _serve(self, step: Step | None, who: str) -> None:
        if step is None:
            return
        self._publishing.lessen()
        if step:
            now = self._now()
            wave = Wave(0, (rejection_cause(who),), 0, now, now, self._clock())
            self._publishing.withhold(wave, step)
        self._withheld.set()
        self._judged.set()
        self._changed()
