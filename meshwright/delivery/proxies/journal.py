"""Buffer of sent responses and ACKs, written to the history and the quarantine when no proxy waits.

Recording a push and its ACK costs about as much as sending it, and the records are read only by people, after
a rejection, and by the next wave. The journal therefore buffers them until no proxy has an outstanding
response. The records of one proxy are written earlier if they are needed: before a page reads its history,
when a stream opens or closes, after a rejection in its group, and before its group gets a new snapshot.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, NamedTuple

import structlog

from meshwright.delivery.history.history import Delays, PushHistory
from meshwright.delivery.meters import StreamMeter
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.timing.time_slices import Slices
from xds.cache import NodeKey
from xds.protocol.wire import Response

REST_SECONDS: Final = 0.02
"""Seconds from the last answer until the records are written; responses sent meanwhile go first."""

SILENT_SECONDS: Final = 0.5
"""Seconds without any event after which unanswered responses are not waited for."""

LONGEST_SECONDS: Final = 5.0
"""Maximum seconds that a record waits while the sending goes on."""

MOST: Final = 50_000
"""Maximum number of buffered records, about 10 MB."""

_log = structlog.get_logger("delivery.proxies.journal")


class JournalEntry(NamedTuple):
    """Record of an xDS response of `size` bytes, sent at the time `at`."""

    response: Response
    size: int
    at: float


class Acknowledgement(NamedTuple):
    """Record of an ACK received at the time `at`, from a proxy without rejections."""

    response: Response
    at: float


class Journal:
    """Buffered records by proxy, each proxy's in the order of the events. Use on the event loop.

    All times are seconds of one monotonic clock: `now` reads it, and `pause` waits.
    """

    def __init__(
        self,
        history: PushHistory,
        quarantine: Quarantine,
        meter: StreamMeter,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._history = history
        self._quarantine = quarantine
        self._meter = meter
        self._now = now
        self._pause = pause
        self._entries: dict[NodeKey, list[JournalEntry | Acknowledgement]] = {}
        self._count = 0
        self._unanswered = 0
        self._noted = asyncio.Event()
        self._due = asyncio.Event()

    @property
    def waits(self) -> bool:
        """True if any record is buffered."""
        return bool(self._entries)

    def sent(self, node: NodeKey, response: Response, size: int) -> None:
        """Record a response of `size` bytes sent now."""
        self._unanswered += 1
        self._note(node, JournalEntry(response, size, self._now()))

    def accepted(self, node: NodeKey, response: Response) -> None:
        """Buffer a record of an ACK received now, from a proxy without rejections."""
        self._unanswered -= 1
        self._note(node, Acknowledgement(response, self._now()))
        # Records are written while no proxy waits for a response.
        if self._unanswered <= 0:
            self._due.set()

    def held(self, node: NodeKey, response: Response) -> None:
        """Record resources that a reconnecting proxy holds already; older records of it are written first."""
        self._enter(node)
        self._quarantine.held(node, response)

    def settle(self, nodes: Iterable[NodeKey]) -> None:
        """Write the buffered records of these proxies to the push history and the quarantine now."""
        for node in nodes:
            self._enter(node)

    def entering(self) -> Iterator[bool | None]:
        """Write all buffered records, proxy by proxy; yield `None` after each proxy, and True at the end."""
        # Unanswered responses start from zero: an answer to an older response must not delay the next write.
        self._count = self._unanswered = 0
        for node in tuple(self._entries):
            self._enter(node)
            yield None
        yield True

    def entered_until(self, now: float) -> float:
        """Return the time up to which all events have been written; `now` if the buffer is empty."""
        return min((entries[0].at for entries in self._entries.values()), default=now)

    async def run(self) -> None:
        """Write buffered records to the push history and the quarantine when due, until cancelled."""
        while True:
            await self._noted.wait()
            while self._entries:  # more may have been added while others were written
                await self._rest()
                await Slices().result(self.entering())
            self._noted.clear()

    async def _rest(self) -> None:
        """Return when the records are due.

        The records are due REST_SECONDS after the last outstanding response was answered, after
        SILENT_SECONDS without an event, after LONGEST_SECONDS, or with MOST records.
        """
        latest = self._now() + LONGEST_SECONDS
        while True:
            known = self._count
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SILENT_SECONDS):
                    await self._due.wait()
            self._due.clear()
            if self._unanswered <= 0:
                await self._pause(REST_SECONDS)
            # No new record since the last look: the remaining proxies do not answer.
            if self._unanswered <= 0 or known == self._count:
                return
            if self._count >= MOST or self._now() >= latest:
                return

    def _note(self, node: NodeKey, entry: JournalEntry | Acknowledgement) -> None:
        if not self._entries:
            self._noted.set()
        self._entries.setdefault(node, []).append(entry)
        self._count += 1
        if self._count == MOST:
            self._due.set()

    def _enter(self, node: NodeKey) -> None:
        """Write the records of a proxy; an error is only logged, because the caller must not fail."""
        try:
            for entry in self._entries.pop(node, ()):
                self._take(node, entry)
        except Exception:  # noqa: BLE001 - an error here concerns records alone
            _log.exception("push history of the proxy cannot be recorded", proxy=node)

    def _take(self, node: NodeKey, entry: JournalEntry | Acknowledgement) -> None:
        match entry:
            case JournalEntry(response, size, at):
                self._measure(self._history.sent(node, response, size, at))
            case Acknowledgement(response, at):
                self._measure(self._history.answered(node, response, None, at))
                self._quarantine.accepted(node, response)

    def _measure(self, delays: Delays) -> None:
        if delays.sent is not None:
            self._meter.pushed(delays.sent)
        if delays.acknowledged is not None:
            self._meter.acknowledged(delays.acknowledged)
