"""Detection of an idle process, and the CPU time until then.

*To quiet* is the CPU time of a process from a change to the end of its first idle window, without the CPU
time of idling. A window has 200 ms, begins `PAUSE` seconds or more after the change, and is idle if it uses
at most `SLACK` more than idling. The pause is needed because a control plane may rest between the last ACK
and its later work; for example, our server looks for problems at most once a second.

The cost of idling is measured around each change, before and after it and for the same time. It varies from
minute to minute by as much as a small change costs.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

WINDOW: Final = 0.2
"""Length of a window in seconds."""
PAUSE: Final = 1.1
"""Minimum seconds between a change and the first window."""
SLACK: Final = 0.002
"""Seconds of CPU time that an idle window may use above the cost of idling."""
LIMIT: Final = 30.0
"""Seconds after which a process counts as restless."""
LEAST: Final = PAUSE + WINDOW
"""Minimum seconds from a change until a process counts as idle."""
SETTLED: Final = 0.05
"""CPU seconds per second of an idle process whose cost of idling is unknown."""

Clock = Callable[[], float]
"""Function that returns the CPU seconds used so far."""


@dataclass(frozen=True, slots=True)
class CpuUsage:
    """CPU seconds of a process in a period of `seconds`."""

    cpu: float
    seconds: float

    @property
    def share(self) -> float:
        """CPU seconds per second of the period."""
        return self.cpu / self.seconds

    def beyond(self, *idle: "CpuUsage") -> float:
        """Return the CPU seconds without the cost of idling, which is the mean of the windows `idle`."""
        return self.cpu - statistics.fmean(cpu_usage.share for cpu_usage in idle) * self.seconds


@dataclass(frozen=True, slots=True)
class QuietProcess:
    """CPU clock and time when a process became idle; `restless` if it did not before the limit."""

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
    """Wait until a process is idle after a change at time `began`.

    `idle` is its cost of idling per second.
    """
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
    """Wait until a process with unknown cost of idling is idle, at most 60 seconds."""
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
    """Return the CPU time of a process in a period of `seconds` without changes."""
    before, began = cpu(), now()
    sleep(seconds)
    return CpuUsage(cpu() - before, now() - began)


def idling(cpu: Clock, windows: int) -> float:
    """Return the CPU seconds per second of an idle process, the median of several windows."""
    return statistics.median(idled(cpu, 1).share for _ in range(windows))
