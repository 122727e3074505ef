"""What a process costs, seen from outside."""

import time
from dataclasses import dataclass
from pathlib import Path

_MIB = 1024


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process, threads that have ended included.

    It is the process's POSIX CPU clock, read from outside: nanoseconds, where /proc has ticks of 10 ms.
    The identifier is Linux's: the complement of the process id, and 2 for the scheduler's clock.
    """
    return time.clock_gettime(~pid << 3 | 2)


@dataclass(frozen=True, slots=True)
class Memory:
    """Mebibytes: resident now, the process's share of it, and the most that was resident."""

    resident: float
    share: float
    peak: float


def memory(pid: int) -> Memory:
    """Return what memory a process holds."""
    status = _fields(Path(f"/proc/{pid}/status"), "VmRSS", "VmHWM")
    share = _fields(Path(f"/proc/{pid}/smaps_rollup"), "Pss")
    return Memory(status["VmRSS"], share["Pss"], status["VmHWM"])


def _fields(path: Path, *names: str) -> dict[str, float]:
    lines = (line.partition(":") for line in path.read_text(encoding="ascii").splitlines())
    return {name: int(value.split()[0]) / _MIB for name, _, value in lines if name in names}
