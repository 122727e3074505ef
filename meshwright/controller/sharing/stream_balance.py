"""Balance of streams between the servers of one mesh: announced numbers, and ended streams."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

import structlog

from meshwright.replicas.balance import YOUNGEST_SECONDS, Obstacle, Share, share
from meshwright.replicas.membership import Membership
from meshwright.sidecars.contract.contexts import MovableStreams

PAUSE_SECONDS: Final = 1.0
"""Seconds between two comparisons; `meshwright.replicas.balance` limits the streams that end in a second."""

_log = structlog.get_logger("controller.sharing")


class StreamBalance:
    """Comparison of this server's streams with those of the other servers, once a second. For one event loop.

    - `streams` returns the streams of all drivers.
    - `missing` returns what the server waits for, empty while it is ready.
    - `is_stopping` and `is_store_away` are asked at each comparison.
    - `moved` is called with the number of streams that were ended.
    """

    def __init__(
        self,
        membership: Membership,
        streams: Callable[[], Iterable[MovableStreams]],
        missing: Callable[[], Iterable[str]],
        *,
        is_stopping: Callable[[], bool],
        is_store_away: Callable[[], bool],
        moved: Callable[[int], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._membership = membership
        self._streams = streams
        self._missing = missing
        self._is_stopping = is_stopping
        self._is_store_away = is_store_away
        self._moved = moved
        self._monotonic = monotonic
        self._ready_since: float | None = None
        self._moved_since = 0
        self._is_moving = False

    async def run(self) -> None:
        """Compare and end streams each second until cancelled."""
        while True:
            self.compare()
            await asyncio.sleep(PAUSE_SECONDS)

    def compare(self) -> Share | Obstacle:
        """Announce the number of streams here, and end those of this second; return the comparison."""
        self._announce()
        is_away = self._is_store_away()
        membership = self._membership
        result = share(membership.replica, membership.states, self._ready_for(), is_store_away=is_away)
        if isinstance(result, Share) and result.ending:
            self._log_begin(result)
            self._end(result.ending)
        else:
            self._log_end(result)
        return result

    def _announce(self) -> None:
        streams = sum(movable.streams for movable in self._streams())
        is_ready = not any(True for _ in self._missing())
        if not is_ready:
            self._ready_since = None
        elif self._ready_since is None:
            self._ready_since = self._monotonic()
        self._membership.set_facts(streams=streams, is_ready=is_ready, is_stopping=self._is_stopping())

    def _ready_for(self) -> float:
        return 0.0 if self._ready_since is None else self._monotonic() - self._ready_since

    def _end(self, count: int) -> None:
        """End this many streams, those of the driver with the most streams first."""
        left = count
        for movable in sorted(self._streams(), key=lambda movable: movable.streams, reverse=True):
            left -= movable.end_oldest(left, YOUNGEST_SECONDS)
        if ended := count - left:
            self._moved_since += ended
            self._moved(ended)

    def _log_begin(self, result: Share) -> None:
        if not self._is_moving:
            self._is_moving, self._moved_since = True, 0
            _log.info(
                "more proxies than the fair share are connected here; some are moved to other servers",
                streams=result.streams,
                fair_share=round(result.mean),
            )

    def _log_end(self, result: Share | Obstacle) -> None:
        if self._is_moving:
            self._is_moving = False
            why = result.value if isinstance(result, Obstacle) else "this server has its share"
            _log.info("no more proxies are moved to other servers", reason=why, moved=self._moved_since)
