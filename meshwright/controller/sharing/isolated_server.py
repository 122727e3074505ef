"""The end of streams at a server that alone cannot reach the shared store, while the others can."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import structlog

from meshwright.replicas.balance import MOST_OF_OWN
from meshwright.replicas.isolation import AWAY_SECONDS, Isolation
from meshwright.sidecars.contract.contexts import MovableStreams

LOOK_SECONDS: Final = 5.0
"""Seconds between two questions to the other servers, which are asked only while the store is away."""

PAUSE_SECONDS: Final = 1.0
"""Seconds between two ends of streams."""

_log = structlog.get_logger("controller.sharing")


class IsolatedServer:
    """Readiness and streams of a server that is cut off from the store. For one event loop.

    After `meshwright.replicas.isolation.PATIENCE_SECONDS` the server is not ready, and ends its streams
    slowly: a fiftieth each second, for example 20 of 1000 streams. A stream that begins later goes on,
    because its proxy may reach no other server.

    - `age` returns the seconds since the last answer of the store, None before the first one.
    - `ask` returns the ages at the other servers that answer.
    - `streams` returns the streams of all drivers, and `moved` is called with the number of ended streams.
    """

    def __init__(
        self,
        age: Callable[[], float | None],
        ask: Callable[[], Awaitable[Sequence[float | None]]],
        streams: Callable[[], Iterable[MovableStreams]],
        moved: Callable[[int], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._age, self._ask, self._streams, self._moved = age, ask, streams, moved
        self._monotonic = monotonic
        self._isolation = Isolation()
        self._unready_since: float | None = None

    def waited_for(self) -> tuple[str, ...]:
        """Return the reason why the server is not ready, if any. May be called from any thread."""
        if self._unready_since is None:
            return ()
        return ("the shared store, which answers other servers: check this server's network",)

    async def run(self) -> None:
        """Ask the other servers while the store is away, and end streams, until cancelled."""
        await asyncio.gather(self._looking(), self._ending())

    async def look(self) -> None:
        """Judge once whether this server is cut off."""
        age = self._age()
        is_here = age is not None and age < AWAY_SECONDS
        others = () if is_here else await self._ask()
        now = self._monotonic()
        self._isolation.note(now, age, others)
        is_long = self._isolation.is_long(now)
        if is_long and self._unready_since is None:
            self._unready_since = now
            _log.error(
                "the shared store answers other servers, and has not answered this one for a long time: "
                "proxies are moved to the others; check the network of this server",
                seconds=round(self._isolation.seconds(now)),
            )
        elif not is_long and self._unready_since is not None:
            self._unready_since = None
            _log.info("this server is ready again: it is not the only one without the shared store")

    def end_streams(self) -> None:
        """End a part of the streams that began while the server was ready."""
        if self._unready_since is None:
            return
        youngest = self._monotonic() - self._unready_since
        for movable in self._streams():
            if ended := movable.end_oldest(math.ceil(MOST_OF_OWN * movable.streams), youngest):
                self._moved(ended)

    async def _looking(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def _ending(self) -> None:
        while True:
            self.end_streams()
            await asyncio.sleep(PAUSE_SECONDS)
