"""Repeated log lines on an event loop: the caller writes the first one, this module the counts."""

import asyncio
from collections.abc import Callable, Mapping

from meshwright.serving.repeats import PERIOD_SECONDS, Repeats

Again = Callable[[str, int], None]
"""Function that writes the line with the number of further events of a kind."""


class RepeatedLines:
    """Rate limit for the repeated log lines of one logger, by kind of event; for one event loop."""

    def __init__(self, again: Again, seconds: float = PERIOD_SECONDS) -> None:
        self._again = again
        self._repeats = Repeats(seconds)
        self._timer: asyncio.TimerHandle | None = None

    def first(self, kind: str) -> bool:
        """Count an event of a kind. Return True if the caller must write a log line now."""
        result = self._repeats.first(kind, asyncio.get_running_loop().time())
        self._wait()
        return result

    def kind(self, wanted: str) -> str:
        """Return the kind under which events are counted, see Repeats.kind."""
        return self._repeats.kind(wanted)

    def flush(self) -> None:
        """Write a log line for each remaining count, at the end of the server."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._write(self._repeats.rest())

    # One timer for all kinds, at the earliest end of a period.
    def _wait(self) -> None:
        due = self._repeats.next_due()
        if self._timer is None and due is not None:
            self._timer = asyncio.get_running_loop().call_at(due, self._period_ended)

    def _period_ended(self) -> None:
        self._timer = None
        self._write(self._repeats.due(asyncio.get_running_loop().time()))
        self._wait()

    def _write(self, counts: Mapping[str, int]) -> None:
        for kind, count in counts.items():
            self._again(kind, count)
