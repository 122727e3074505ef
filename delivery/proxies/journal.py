"""What proxies were sent and have acknowledged, until it is entered in the books: when nobody waits for it.

What is remembered of each response (`history`) and of each ACK (`quarantine`) is asked for by people, by a
rejection and by the wave after. To enter it takes as long as to send it, and who is sent a change next need
not wait for that. So it is noted here, and entered when the streams rest; of a proxy sooner, where somebody
asks, or something happens to it that is understood by what came before.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, NamedTuple

from delivery.history.history import Delays, PushHistory
from delivery.meters import StreamMeter
from delivery.quarantine.quarantine import Quarantine
from delivery.time_slices import Slices
from xds.cache import NodeKey
from xds.protocol.wire import Response

QUIET_SECONDS: Final = 0.05
"""For how long nothing must have been noted until all is entered."""

LONGEST_SECONDS: Final = 5.0
"""How long nothing waits longer than, however much is sent."""

MOST: Final = 50_000
"""Entries that may wait: some ten megabytes."""


class Sending(NamedTuple):
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
        self._entries: dict[NodeKey, list[Sending | Acknowledgement]] = {}
        self._count = 0
        self._noted = asyncio.Event()

    def __bool__(self) -> bool:
        """Say whether anything waits to be entered."""
        return bool(self._entries)

    def note(self, node: NodeKey, entry: Sending | Acknowledgement) -> None:
        """Note what happened to a proxy just now."""
        self._count += 1
        if (known := self._entries.get(node)) is not None:
            known.append(entry)
            return
        if not self._entries:
            self._noted.set()
        self._entries[node] = [entry]

    def settle(self, nodes: Iterable[NodeKey]) -> None:
        """Enter all of some proxies now."""
        for node in nodes:
            self._enter(node)

    def entering(self) -> Iterator[bool | None]:
        """Enter all that there is now, proxy by proxy; yield None after each, and in the end True."""
        for node in tuple(self._entries):
            self._enter(node)
            yield None
        yield True

    def entered_until(self, now: float) -> float:
        """Return up to which moment all is entered that happened; `now` where nothing waits."""
        return min((each[0].at for each in self._entries.values()), default=now)

    async def run(self) -> None:
        """Enter what is noted whenever the streams rest, until cancelled."""
        while True:
            await self._noted.wait()
            self._noted.clear()
            await self._rest()
            await Slices().result(self.entering())
            if self._entries:  # of those who were sent something meanwhile
                self._noted.set()

    async def _rest(self) -> None:
        """Return when nothing was noted for a while, or nothing may wait any longer."""
        latest = self._now() + LONGEST_SECONDS
        first, known = self._count, None
        while known != self._count and self._now() < latest and self._count - first < MOST:
            known = self._count
            await self._pause(QUIET_SECONDS)

    def _enter(self, node: NodeKey) -> None:
        for entry in self._entries.pop(node, ()):
            match entry:
                case Sending(response, size, at):
                    self._measure(self._history.sent(node, response, size, at))
                case Acknowledgement(response, at):
                    self._measure(self._history.answered(node, response, None, at))
                    self._quarantine.accepted(node, response)

    def _measure(self, delays: Delays) -> None:
        if delays.sent is not None:
            self._meter.pushed(delays.sent)
        if delays.acknowledged is not None:
            self._meter.acknowledged(delays.acknowledged)
