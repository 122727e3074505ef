"""When a wave begins: the first change after quiet at once, a burst when it pauses or has waited enough."""

import asyncio
import enum
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

PER_PROXY: Final = 0.004
"""Seconds from a wave to one of admissions per proxy that it concerned: some ten times what that cost."""

SLOWEST: Final = 5.0
"""Seconds that no admission waits longer than, however many they concern."""


class Matter(enum.Enum):
    """What a change is about: where something runs, that it may get traffic, or anything else."""

    ENDPOINTS = enum.auto()
    ADMISSIONS = enum.auto()
    POLICY = enum.auto()


@dataclass(frozen=True, slots=True)
class Pace:
    """How changes are gathered, in seconds.

    `quiet` without a change ends a burst; no change waits longer than `longest`.
    """

    quiet: float = 0.1
    longest: float = 1.0


@dataclass(frozen=True, slots=True)
class PendingChanges:
    """Changes that no wave has taken up: when the first and the last of them came, and the last wave began.

    All moments are of one monotonic clock. `wave` is None before the first wave.
    """

    first: float
    last: float
    wave: float | None = None


def for_so_many(pace: Pace, proxies: int) -> Pace:
    """Return how admissions are gathered after a wave that concerned so many proxies.

    Where everybody may call everybody, all are told of each sidecar that is ready: while hundreds connect, to
    tell each of each would take longer than to serve them.
    """
    wait = min(proxies * PER_PROXY, SLOWEST)
    return Pace(max(pace.quiet, wait), max(pace.longest, wait))


def begin_at(pending: PendingChanges, pace: Pace) -> float:
    """Return the moment at which the next wave should begin; it may lie in the past.

    A change that comes at least `quiet` after the last wave began goes at once, and one that comes sooner and
    stays alone when that time is over. Others are a burst: they wait until there was no change for `quiet`,
    but never longer than `longest`.
    """
    if pending.wave is None or pending.first - pending.wave >= pace.quiet:
        return pending.first
    if pending.last == pending.first:
        return pending.wave + pace.quiet
    return min(pending.last + pace.quiet, pending.first + pace.longest)


class Changes:
    """Gathers changes for the task that makes waves, each matter at its own pace; times are arguments.

    A wave takes up everything that has come, whatever it was due to: nothing waits longer because something
    else goes first.
    """

    __slots__ = ("_concerned", "_noted", "_wave")

    def __init__(self) -> None:
        self._concerned = 0
        self._noted: dict[Matter, tuple[float, float]] = {}
        self._wave: float | None = None

    def note(self, now: float, matter: Matter = Matter.POLICY) -> None:
        """Note a change."""
        first, _ = self._noted.get(matter, (now, now))
        self._noted[matter] = (first, now)

    def due(self, paces: Mapping[Matter, Pace]) -> float | None:
        """Return when a wave should begin, or None while there is nothing to do."""
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
        """Note how many proxies the last wave concerned."""
        self._concerned = proxies

    def take(self, now: float) -> float:
        """Begin a wave with all that was noted; return when the first change came, `now` without one."""
        since = min((first for first, _ in self._noted.values()), default=now)
        self._noted, self._wave = {}, now
        return since


class Debounce:
    """Changes, and waiting on the event loop until a wave should begin for them."""

    def __init__(self, paces: Mapping[Matter, Pace]) -> None:
        self._paces = paces
        self._changes = Changes()
        self._noted = asyncio.Event()

    def note(self, matter: Matter) -> None:
        """Note a change; to be called on the event loop."""
        self._changes.note(time.monotonic(), matter)
        self._noted.set()

    def pace(self, paces: Mapping[Matter, Pace]) -> None:
        """Gather at other paces from now on, what has come included."""
        self._paces = paces
        self._noted.set()

    def take(self, now: float) -> float:
        """Begin a wave: see Changes."""
        return self._changes.take(now)

    def concerned(self, proxies: int) -> None:
        """Note how many proxies the last wave concerned."""
        self._changes.concerned(proxies)

    async def due(self) -> None:
        """Return when the next wave should begin."""
        await until(lambda: self._changes.due(self._paces), self._noted, time.monotonic)


async def until(due: Callable[[], float | None], noted: asyncio.Event, now: Callable[[], float]) -> None:
    """Return when it is due, by the clock `now`; it is asked again whenever something is noted.

    None says that nothing is due before that. `noted` is cleared.
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
