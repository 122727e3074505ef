"""CPU time and memory of a process, read from outside."""

import time
from dataclasses import dataclass
from pathlib import Path

_MIB = 1024


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process in seconds, including ended threads.

    The source is the POSIX CPU clock of the process, with nanoseconds; /proc has only ticks of 10 ms. On
    Linux the identifier of the clock is the complement of the pid, shifted by three bits, and 2 for the
    scheduler's clock.
    """
    return time.clock_gettime(~pid << 3 | 2)


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory in MiB: resident now, the proportional share (PSS), and the maximum of the resident memory."""

    resident: float
    share: float
    peak: float


def memory(pid: int) -> Memory:
    """Return the memory of the process with this pid."""
    status = _fields(Path(f"/proc/{pid}/status"), "VmRSS", "VmHWM")
    share = _fields(Path(f"/proc/{pid}/smaps_rollup"), "Pss")
    return Memory(status["VmRSS"], share["Pss"], status["VmHWM"])


def _fields(path: Path, *names: str) -> dict[str, float]:
    lines = (line.partition(":") for line in path.read_text(encoding="ascii").splitlines())
    return {name: int(value.split()[0]) / _MIB for name, _, value in lines if name in names}
