"""Waves that are on their way: each is followed to the last answer of those whom it concerns, for a while.

Only where somebody wants to know (see admin.spans). What is kept of a wave is bounded, whomever it concerns.
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
"""Responses of a wave that are told one by one; of the others, how many they are."""

REJECTED: Final = 20
"""Of those others, so many that were rejected are told all the same."""

QUIET: Final = 2.0
"""Seconds after the last answer until nothing more is expected: a type may wait for the answer to another."""

DEADLINE: Final = 30.0
"""Seconds after it was published until nobody is waited for any more."""

WAVES: Final = 64
"""Waves that are waited for at once."""


class _OpenWave:
    """One wave that is on its way."""

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
        rejected = push.state is Answer.NACK and len(self.pushes) < PUSHES + REJECTED
        if rejected or push in self.pushes:
            self.pushes[push] = (node, PushRecord.of(node, push, now))

    def ending(self, now: float) -> WaveEnd | None:
        """Return why nobody is waited for any more, None as long as somebody is."""
        if self.published is None:  # it takes its time, or has failed half-way
            return WaveEnd.LATE if now - self.publishing >= DEADLINE else None
        if not self.waiting and len(self.nodes) >= (self.touched or 0) and now - self.last >= QUIET:
            return WaveEnd.ANSWERED
        return WaveEnd.LATE if now - self.published >= DEADLINE else None

    def record(self, ending: WaveEnd, now: float) -> WaveRecord:
        published = now if self.published is None else self.published
        ended = now if self.waiting else max(self.last, published)
        pushes = tuple(
            PushRecord.of(node, push, ended) if done is None else done
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
            pushes=tuple(sorted(pushes, key=lambda each: each.sent)),
        )


class OpenWaves:
    """Follows waves as delivery tells of them, and gives them away as they end; on the event loop.

    A wave of which nothing was published is not followed. `now` reads the clock of all moments.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: dict[int, _OpenWave] = {}
        self._crowded_out: list[WaveRecord] = []

    def publishing(self, wave: Wave) -> None:
        """Begin to follow a wave; the oldest is given up where there are too many."""
        now = self._now()
        if len(self._open) >= WAVES:
            oldest = self._open.pop(next(iter(self._open)))
            self._crowded_out.append(oldest.record(WaveEnd.CROWDED_OUT, now))
        self._open[wave.number] = _OpenWave(wave, now)

    def published(self, wave: Wave, touched: int) -> None:
        """Note that a part of it was published, and how many connected proxies that concerns."""
        if (found := self._open.get(wave.number)) is not None:
            found.touched = (found.touched or 0) + touched

    def over(self, wave: Wave) -> None:
        """Note that all of it was published."""
        if (found := self._open.get(wave.number)) is None:
            return
        if found.touched is None:
            del self._open[wave.number]
            return
        found.published = self._now()
        found.last = max(found.last, found.published)

    def sent(self, node: NodeKey, push: SentResponse) -> None:
        """Note a response that goes out."""
        for found in self._concerned(push):
            found.sent(node, push)

    def finished(self, node: NodeKey, push: SentResponse, now: float) -> None:
        """Note that a response was answered then, or never will be."""
        for found in self._concerned(push):
            found.finished(node, push, now)

    def take(self, now: float) -> list[WaveRecord]:
        """Return what became of those waves for which nobody is waited any more, and forget them."""
        ended, self._crowded_out = self._crowded_out, []
        for number, found in list(self._open.items()):
            if (ending := found.ending(now)) is not None:
                del self._open[number]
                ended.append(found.record(ending, now))
        return ended

    def _concerned(self, push: SentResponse) -> Iterator[_OpenWave]:
        for wave in due(push):
            if (found := self._open.get(wave.number)) is not None:
                yield found
