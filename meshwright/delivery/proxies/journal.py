"""What proxies were sent and have acknowledged, until it is entered in the books: when nobody waits for it.

What is remembered of each response (`history`) and of each ACK (`quarantine`) is asked for by people, by a
rejection and by the wave after. To enter it takes about as long as to send, and who is sent a change next
need not wait for that. So it is noted here, and entered when nobody owes an answer; of a proxy sooner, where
somebody asks, or something happens to it that is understood by what came before.
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
"""How long after the last answer all is entered: whoever is sent something meanwhile goes first."""

SILENT_SECONDS: Final = 0.5
"""Whoever has not answered when nothing happened for so long is waited for no longer."""

LONGEST_SECONDS: Final = 5.0
"""How long an entry waits at most while proxies are sent more and more."""

MOST: Final = 50_000
"""Entries that may wait: some ten megabytes."""

_log = structlog.get_logger("delivery.proxies.journal")


class JournalEntry(NamedTuple):
    """A response of `size` bytes that went out `at` a moment."""

    response: Response
    size: int
    at: float


class Acknowledgement(NamedTuple):
    """An ACK that came `at` a moment, of a proxy that never rejected anything."""

    response: Response
    at: float


class Journal:
    """Entries by proxy, each proxy's in the order in which they came. Used on the event loop.

    All moments are of one monotonic clock, in seconds: `now` reads it, and `pause` lets so many of them pass.
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
        """Whether anything is still to be entered."""
        return bool(self._entries)

    def sent(self, node: NodeKey, response: Response, size: int) -> None:
        """Note a response of `size` bytes that goes out now."""
        self._unanswered += 1
        self._note(node, JournalEntry(response, size, self._now()))

    def accepted(self, node: NodeKey, response: Response) -> None:
        """Note an ACK that comes now, of a proxy that never rejected anything."""
        self._unanswered -= 1
        self._note(node, Acknowledgement(response, self._now()))
        if self._unanswered <= 0:
            self._due.set()

    def settle(self, nodes: Iterable[NodeKey]) -> None:
        """Enter all of some proxies now."""
        for node in nodes:
            self._enter(node)

    def entering(self) -> Iterator[bool | None]:
        """Enter all that there is now, proxy by proxy; yield None after each, and in the end True."""
        self._count = self._unanswered = 0
        for node in tuple(self._entries):
            self._enter(node)
            yield None
        yield True

    def entered_until(self, now: float) -> float:
        """Return up to which moment all is entered that happened; `now` where nothing waits."""
        return min((each[0].at for each in self._entries.values()), default=now)

    async def run(self) -> None:
        """Enter what is noted when it is time, until cancelled."""
        while True:
            await self._noted.wait()
            while self._entries:  # some were noted while others were entered
                await self._rest()
                await Slices().result(self.entering())
            self._noted.clear()

    async def _rest(self) -> None:
        """Return when nobody owes an answer who gives one, or what is noted has waited long enough."""
        latest = self._now() + LONGEST_SECONDS
        while True:
            known = self._count
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SILENT_SECONDS):
                    await self._due.wait()
            self._due.clear()
            if self._unanswered <= 0:
                await self._pause(REST_SECONDS)
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
        """Enter all of a proxy; what goes wrong is said, and is no trouble of others or of who looks."""
        try:
            for entry in self._entries.pop(node, ()):
                self._take(node, entry)
        except Exception:  # noqa: BLE001 - whatever it is, it is about what is remembered alone
            _log.exception("what a proxy was sent or accepted is not remembered", proxy=node)

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
