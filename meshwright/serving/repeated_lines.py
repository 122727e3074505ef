"""Log lines that repeat, on an event loop: the first is its caller's to write, counts are written here."""

import asyncio
from collections.abc import Callable, Mapping

from meshwright.serving.repeats import PERIOD_SECONDS, Repeats

Again = Callable[[str, int], None]
"""Writes the line that says how many further events of a kind there were."""


class RepeatedLines:
    """Lines of one logger, by kind; used from one event loop."""

    def __init__(self, again: Again, seconds: float = PERIOD_SECONDS) -> None:
        self._again = again
        self._repeats = Repeats(seconds)
        self._timer: asyncio.TimerHandle | None = None

    def first(self, kind: str) -> bool:
        """Count an event; return True if its caller is to write a line now."""
        found = self._repeats.first(kind, asyncio.get_running_loop().time())
        self._wait()
        return found

    def kind(self, wanted: str) -> str:
        """Return the kind under which events are counted, see Repeats.kind."""
        return self._repeats.kind(wanted)

    def flush(self) -> None:
        """Write all counts that are not written yet: the server ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._write(self._repeats.rest())

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
