"""Record, search and removal of processes, network interfaces and shared memory of a demo.

Normally the kernel cleans up: processes are killed with the demo (PR_SET_PDEATHSIG), namespaces end with the
processes in them, and links end with their namespaces. The record in the state directory is for the cases in
which this fails, for example without the program `setpriv`.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

LINK_PREFIX: Final = "mwdemo"
"""Prefix of the host's end of the link to the demo's namespaces; hexadecimal digits of the pid follow."""
_RECORD: Final = "running.json"
_MARK: Final = "MW_DEMO_STATE"
# The path is only searched, never written.
_SHARED_MEMORY: Final = re.compile(r"/dev/shm/envoy_shared_memory_\d+")  # noqa: S108 - as said


@dataclass(frozen=True, slots=True, order=True)
class ProcessId:
    """Identity of a process: pid and start time in clock ticks since boot, because pids are reused."""

    pid: int
    start: int

    @classmethod
    def read(cls, pid: int) -> Self | None:
        """Return the identity of a process; None if the process does not exist or is a zombie."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))

    def is_alive(self) -> bool:
        """Return whether the process still runs, and not another one with the same pid."""
        return ProcessId.read(self.pid) == self


@dataclass(slots=True)
class Record:
    """Processes, links and shared memory of a demo; each is written before or soon after its creation."""

    state: Path
    boot: str = ""
    processes: set[ProcessId] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    shared_memory: set[str] = field(default_factory=set)

    @classmethod
    def load(cls, state: Path) -> Self:
        """Read the record of `state`.

        Return an empty one if it is missing, invalid or from an earlier boot.
        """
        try:
            data = json.loads((state / _RECORD).read_text("utf-8"))
            result = cls(
                state,
                str(data["boot"]),
                {ProcessId(int(pid), int(start)) for pid, start in data["processes"]},
                {str(link) for link in data["links"]},
                {str(path) for path in data["shared_memory"]},
            )
        except (OSError, ValueError, KeyError, TypeError):
            return cls(state, _boot_id())
        return result if result.boot == _boot_id() else cls(state, _boot_id())

    def save(self) -> None:
        """Write the record to the state directory atomically."""
        data = {
            "boot": self.boot,
            "processes": sorted((process.pid, process.start) for process in self.processes),
            "links": sorted(self.links),
            "shared_memory": sorted(self.shared_memory),
        }
        self.state.mkdir(parents=True, exist_ok=True)
        # A demo may be killed while it writes; the old record must then still be readable.
        temporary = self.state / f"{_RECORD}.new"
        temporary.write_text(json.dumps(data), "utf-8")
        temporary.replace(self.state / _RECORD)


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()


def shared_memory(pid: int) -> set[str]:
    """Return the hot-restart files mapped by a process. Envoys of the demo map none without `hot_restart`."""
    try:
        return set(_SHARED_MEMORY.findall(Path(f"/proc/{pid}/maps").read_text("utf-8")))
    except OSError:
        return set()


def remove(state: Path, deadline: float = 10.0) -> None:
    """Remove everything that an earlier demo with this state directory left. Idempotent.

    Waits at most `deadline` seconds for killed processes.
    """
    record = Record.load(state)
    for process in record.processes:
        if process.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
    limit = time.monotonic() + deadline
    while any(process.is_alive() for process in record.processes) and time.monotonic() < limit:
        time.sleep(0.02)
    for link in record.links:
        if _has_link(link):
            subprocess.run(["ip", "link", "delete", link], capture_output=True, check=False)
    for path in record.shared_memory:
        Path(path).unlink(missing_ok=True)
    (state / _RECORD).unlink(missing_ok=True)


def find(state: Path) -> tuple[str, ...]:
    """Return a line for each thing left behind by a demo with this state directory; normally an empty tuple.

    Looks at recorded processes, at every process with the state directory's mark (see `mark`), at links, and
    at hot-restart files that were mapped by the demo's own processes.
    """
    record = Record.load(state)
    result = [
        f"process {process.pid}, started by the demo" for process in record.processes if process.is_alive()
    ]
    result += [f"process {pid}: {command[:120]}" for pid, command in _marked(state)]
    result += [f"network interface {link}" for link in record.links if _has_link(link)]
    result += [f"shared memory {path}" for path in record.shared_memory if Path(path).exists()]
    return tuple(sorted(result))


def wait_for_none(state: Path, deadline: float = 5.0) -> tuple[str, ...]:
    """Wait at most `deadline` seconds until all remains of a demo are gone; return the rest."""
    limit = time.monotonic() + deadline
    # The kernel removes namespaces and their links some time after their last process has ended.
    while (result := find(state)) and time.monotonic() < limit:
        time.sleep(0.05)
    return result


def _has_link(link: str) -> bool:
    return link.startswith(LINK_PREFIX) and Path(f"/sys/class/net/{link}").exists()


def mark(state: Path) -> dict[str, str]:
    """Return an environment variable that marks all processes of the demo with this state directory."""
    return {_MARK: str(state.absolute())}


def _marked(state: Path) -> Iterator[tuple[int, str]]:
    wanted = "=".join(*mark(state).items()).encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                yield int(entry.name), command
        except OSError:  # gone by now, or another user's
            continue
