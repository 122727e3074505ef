"""Coalesce bursts of changes into waves.

A first change after a quiet period begins a wave at once, so a single edit is fast. In a burst the wave
begins after `quiet` seconds without a change, but at most `longest` seconds after the first one. Without this
upper bound a source that changes ten times a second would delay all other changes for ever.

Changes of policy, of endpoints and of admissions have paces of their own. A wave always takes up all changes,
whichever of them was due.
"""

import asyncio
import enum
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

PER_PROXY: Final = 0.004
"""Seconds to wait with an admission per proxy that the last wave concerned.

About ten times the wave's cost.
"""

SLOWEST: Final = 5.0
"""Maximum seconds that an admission waits, whatever the number of proxies."""


class Matter(enum.Enum):
    """Kind of a change of the mesh: endpoints, a proxy's admission to traffic, or anything else."""

    ENDPOINTS = enum.auto()
    ADMISSIONS = enum.auto()
    POLICY = enum.auto()


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of gathering, in seconds.

    A burst ends after `quiet` seconds without a change; no change waits more than `longest` seconds.
    """

    quiet: float = 0.1
    longest: float = 1.0


@dataclass(frozen=True, slots=True)
class PendingChanges:
    """Changes that are not in a wave yet: times of the first and last change, and of the last wave.

    All times are seconds of one monotonic clock. `wave` is `None` before the first wave.
    """

    first: float
    last: float
    wave: float | None = None


def for_so_many(pace: Pace, proxies: int) -> Pace:
    """Return the pace of admissions after a wave that concerned this many proxies.

    Where every service may call every other, each admission changes the endpoints of all proxies. While
    hundreds of proxies connect, a wave for each admission took twice as long as serving the proxies
    themselves.
    """
    wait = min(proxies * PER_PROXY, SLOWEST)
    return Pace(max(pace.quiet, wait), max(pace.longest, wait))


def begin_at(pending: PendingChanges, pace: Pace) -> float:
    """Return the time at which the next wave should begin, which may be in the past.

    A change at least `quiet` seconds after the last wave begins a wave at once. A single change before then
    waits until `quiet` seconds after that wave. Several changes are a burst: they wait until `quiet` seconds
    have passed without a change, and at most `longest` seconds. For example, with 0.1 and 1 s, changes every
    50 ms begin a wave once a second.
    """
    if pending.wave is None or pending.first - pending.wave >= pace.quiet:
        return pending.first
    if pending.last == pending.first:
        return pending.wave + pace.quiet
    # The upper bound keeps a source with constant changes from delaying everything else.
    return min(pending.last + pace.quiet, pending.first + pace.longest)


class Changes:
    """Pending changes by subject, each with its own pace; times are arguments.

    A wave takes up all pending changes, so no change waits longer because another subject was due first.
    """

    __slots__ = ("_concerned", "_noted", "_wave")

    def __init__(self) -> None:
        self._concerned = 0
        self._noted: dict[Matter, tuple[float, float]] = {}
        self._wave: float | None = None

    def note(self, now: float, matter: Matter = Matter.POLICY) -> None:
        """Record a change of the kind `matter` at the time `now`, in seconds of a monotonic clock."""
        first, _ = self._noted.get(matter, (now, now))
        self._noted[matter] = (first, now)

    def due(self, paces: Mapping[Matter, Pace]) -> float | None:
        """Return the time at which the next wave should begin, or `None` without pending changes."""
        return min(
            (
                begin_at(PendingChanges(first, last, self._wave), self._pace(paces, matter))
                for matter, (first, last) in self._noted.items()
            ),
            default=None,
        )

    def _pace(self, paces: Mapping[Matter, Pace], matter: Matter) -> Pace:
        pace = paces[matter]
        return for_so_many(pace, self._concerned) if matter is Matter.ADMISSIONS else pace

    def concerned(self, proxies: int) -> None:
        """Record the number of connected proxies for which the last wave changed resources."""
        self._concerned = proxies

    def take(self, now: float) -> float:
        """Begin a wave with all changes; return the time of the first change, or `now` without any."""
        # All subjects at once: a wave reads all sources in any case.
        since = min((first for first, _ in self._noted.values()), default=now)
        self._noted, self._wave = {}, now
        return since


class Debounce:
    """Pending changes, with a way to wait for the next wave. All methods must be called on the event loop."""

    def __init__(self, paces: Mapping[Matter, Pace]) -> None:
        self._paces = paces
        self._changes = Changes()
        self._noted = asyncio.Event()

    def note(self, matter: Matter) -> None:
        """Record a change of the mesh at the present time."""
        self._changes.note(time.monotonic(), matter)
        self._noted.set()

    def pace(self, paces: Mapping[Matter, Pace]) -> None:
        """Gather changes with other paces from now on, also the changes already pending."""
        self._paces = paces
        self._noted.set()

    def take(self, now: float) -> float:
        """Begin a wave with all pending changes; see `Changes.take`."""
        return self._changes.take(now)

    def concerned(self, proxies: int) -> None:
        """Record the number of connected proxies for which the last wave changed resources."""
        self._changes.concerned(proxies)

    async def due(self) -> None:
        """Wait until the next wave should begin."""
        await until(lambda: self._changes.due(self._paces), self._noted, time.monotonic)


async def until(due: Callable[[], float | None], noted: asyncio.Event, now: Callable[[], float]) -> None:
    """Return when the time `due()` has come by the clock `now`; ask `due` again after each `noted.set()`.

    `None` means that nothing is due yet. `noted` is cleared after each wake-up.
    """
    while True:
        moment = due()
        wait = None if moment is None else moment - now()
        if wait is not None and wait <= 0:
            return
        try:
            async with asyncio.timeout(wait):
                await noted.wait()
        except TimeoutError:
            continue
        noted.clear()
