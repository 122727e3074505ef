"""Waves in flight, each followed until the last answer of the proxies that it concerns, or a deadline.

Only used with the setting `trace_collector` (see `meshwright.admin.spans`). The memory per wave is bounded.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from meshwright.delivery.history.push import Answer
from meshwright.delivery.history.record import SentResponse
from meshwright.delivery.history.wave_record import PushRecord, WaveEnd, WaveRecord, due
from meshwright.delivery.wave import Wave
from xds.cache import NodeKey

PUSHES: Final = 100
"""Number of responses of a wave recorded one by one; further responses are only counted."""

REJECTED: Final = 20
"""Number of rejected responses beyond PUSHES that are recorded as well."""

QUIET: Final = 2.0
"""Seconds after the last answer until a wave ends.

A type can wait for the answer to another type. For example, clusters are removed after the ACK of routes
(rule O2).
"""

DEADLINE: Final = 30.0
"""Seconds after the publication until a wave ends, whether or not all proxies have answered."""

WAVES: Final = 64
"""Maximum number of waves in flight; beyond it, the oldest ends at once."""


class _OpenWave:
    """One wave in flight, with the responses sent because of the wave, and their answers."""

    __slots__ = (
        "answers",
        "last",
        "nodes",
        "published",
        "publishing",
        "pushes",
        "touched",
        "waiting",
        "wave",
    )

    def __init__(self, wave: Wave, now: float) -> None:
        self.wave = wave
        self.publishing = self.last = now
        self.published: float | None = None
        self.touched: int | None = None
        self.nodes: set[NodeKey] = set()
        self.waiting = 0
        self.answers: Counter[Answer] = Counter()
        self.pushes: dict[SentResponse, tuple[NodeKey, PushRecord | None]] = {}

    def sent(self, node: NodeKey, push: SentResponse) -> None:
        self.nodes.add(node)
        self.waiting += 1
        self.last = max(self.last, push.sent)
        if len(self.pushes) < PUSHES:
            self.pushes[push] = (node, None)

    def finished(self, node: NodeKey, push: SentResponse, now: float) -> None:
        self.waiting -= 1
        self.last = max(self.last, now)
        self.answers[push.state] += 1
        # People search a trace for rejections, so some are recorded beyond the bound.
        rejected = push.state is Answer.NACK and len(self.pushes) < PUSHES + REJECTED
        if rejected or push in self.pushes:
            self.pushes[push] = (node, PushRecord.from_response(node, push, now))

    def ending(self, now: float) -> WaveEnd | None:
        """Return the reason why the wave has ended, or `None` if proxies may still answer."""
        if self.published is None:  # still being published, or failed half-way
            return WaveEnd.LATE if now - self.publishing >= DEADLINE else None
        if not self.waiting and len(self.nodes) >= (self.touched or 0) and now - self.last >= QUIET:
            return WaveEnd.ANSWERED
        return WaveEnd.LATE if now - self.published >= DEADLINE else None

    def record(self, ending: WaveEnd, now: float) -> WaveRecord:
        published = now if self.published is None else self.published
        ended = now if self.waiting else max(self.last, published)
        pushes = tuple(
            PushRecord.from_response(node, push, ended) if done is None else done
            for push, (node, done) in self.pushes.items()
        )
        return WaveRecord(
            wave=self.wave,
            publishing=self.publishing,
            published=published,
            ended=ended,
            ending=ending,
            touched=self.touched or 0,
            reached=len(self.nodes),
            answers=self.answers + Counter({Answer.PENDING: self.waiting}),
            pushes=tuple(sorted(pushes, key=lambda push_record: push_record.sent)),
        )


class OpenWaves:
    """Follower of waves that are in flight; use on the event loop.

    A wave that publishes nothing is not followed. `now` reads the clock of all moments, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: dict[int, _OpenWave] = {}
        self._crowded_out: list[WaveRecord] = []

    def publishing(self, wave: Wave) -> None:
        """Start to follow a wave. If too many are in flight, the oldest ends as CROWDED_OUT."""
        now = self._now()
        if len(self._open) >= WAVES:
            oldest = self._open.pop(next(iter(self._open)))
            self._crowded_out.append(oldest.record(WaveEnd.CROWDED_OUT, now))
        self._open[wave.number] = _OpenWave(wave, now)

    def published(self, wave: Wave, touched: int) -> None:
        """Record a published part of a wave, with `touched` connected proxies concerned."""
        if (open_wave := self._open.get(wave.number)) is not None:
            open_wave.touched = (open_wave.touched or 0) + touched

    def over(self, wave: Wave) -> None:
        """Mark a wave as completely published, or drop a wave without any published part."""
        if (open_wave := self._open.get(wave.number)) is None:
            return
        if open_wave.touched is None:
            del self._open[wave.number]
            return
        open_wave.published = self._now()
        open_wave.last = max(open_wave.last, open_wave.published)

    def sent(self, node: NodeKey, push: SentResponse) -> None:
        """Record a response sent to a proxy because of waves in flight."""
        for open_wave in self._concerned(push):
            open_wave.sent(node, push)

    def finished(self, node: NodeKey, push: SentResponse, now: float) -> None:
        """Record the end of a response at the time `now`: answered, overtaken, or its stream ended."""
        for open_wave in self._concerned(push):
            open_wave.finished(node, push, now)

    def take(self, now: float) -> list[WaveRecord]:
        """Return the records of all ended waves, and forget these waves."""
        ended, self._crowded_out = self._crowded_out, []
        for number, open_wave in list(self._open.items()):
            if (ending := open_wave.ending(now)) is not None:
                del self._open[number]
                ended.append(open_wave.record(ending, now))
        return ended

    def _concerned(self, push: SentResponse) -> Iterator[_OpenWave]:
        for wave in due(push):
            if (open_wave := self._open.get(wave.number)) is not None:
                yield open_wave
