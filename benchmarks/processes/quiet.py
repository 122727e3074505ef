"""When a process has come to rest, and the CPU until then.

*To quiet* is the CPU that a process uses from before a change until its first window of 200 ms that is as an
idle one and begins `PAUSE` or more after the change, less what it would have used idle. The pause is there
because a control plane may rest between the last ACK and what it does afterwards: ours looks for problems
once a second at most. As an idle one is a window with no more than `SLACK` above what idling costs.

What idling costs is measured beside each change, before and after it and for as long as it took: from one
minute to the next it is another, by as much as a small change costs.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

WINDOW: Final = 0.2
"""Seconds."""
PAUSE: Final = 1.1
"""Seconds."""
SLACK: Final = 0.002
"""Seconds of CPU in one window."""
LIMIT: Final = 30.0
"""Seconds after which a process is taken as it is, and called restless."""
LEAST: Final = PAUSE + WINDOW
"""Seconds that a change takes at least until the process is said to rest."""
SETTLED: Final = 0.05
"""CPU seconds a second, of a process of which it is not known yet what idling costs it."""

Clock = Callable[[], float]
"""CPU seconds that a process has used so far."""


@dataclass(frozen=True, slots=True)
class CpuUsage:
    """CPU seconds that a process used in so many seconds."""

    cpu: float
    seconds: float

    @property
    def share(self) -> float:
        """CPU seconds a second."""
        return self.cpu / self.seconds

    def beyond(self, *idle: "CpuUsage") -> float:
        """Return the CPU without what idling costs, which is what it cost in other windows, in the mean."""
        return self.cpu - statistics.fmean(each.share for each in idle) * self.seconds


@dataclass(frozen=True, slots=True)
class QuietProcess:
    """A process at rest: its CPU clock then, the time, and whether it had to be taken as it was."""

    cpu: float
    moment: float
    restless: bool


def until_quiet(
    cpu: Clock,
    idle: float,
    began: float,
    now: Clock = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> QuietProcess:
    """Wait until a process rests after a change that began then; `idle` is its CPU seconds a second."""
    sleep(max(0.0, began + PAUSE - now()))
    before, then = cpu(), now()
    while True:
        sleep(WINDOW)
        after, moment = cpu(), now()
        quiet = after - before <= idle * (moment - then) + SLACK
        if quiet or moment - began > LIMIT:
            return QuietProcess(after, moment, not quiet)
        before, then = after, moment


def settled(cpu: Clock) -> QuietProcess:
    """Wait until a process rests of which nothing is known: a second with hardly any CPU, or the limit."""
    began = time.time()
    while True:
        before = cpu()
        time.sleep(1)
        after, moment = cpu(), time.time()
        if after - before <= SETTLED or moment - began > 2 * LIMIT:
            return QuietProcess(after, moment, after - before > SETTLED)


def idled(
    cpu: Clock,
    seconds: float,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> CpuUsage:
    """Return what a process uses in so many seconds in which nothing changes."""
    before, began = cpu(), now()
    sleep(seconds)
    return CpuUsage(cpu() - before, now() - began)


def idling(cpu: Clock, windows: int) -> float:
    """Return the CPU seconds that each second without a change costs: the median of several."""
    return statistics.median(idled(cpu, 1).share for _ in range(windows))
