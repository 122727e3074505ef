"""What a demo must not leave behind: how it is recorded, found and removed.

Processes die with the demo (PR_SET_PDEATHSIG), namespaces die with the processes that hold them, and
links die with their namespaces; the record in the state directory is for what should not happen.
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
"""The host's end of the link to the demo's namespaces is named so, with hexadecimal digits behind it."""
_RECORD: Final = "running.json"
_MARK: Final = "MW_DEMO_STATE"
# Only looked for, never written.
_SHARED_MEMORY: Final = re.compile(r"/dev/shm/envoy_shared_memory_\d+")  # noqa: S108 - as said


@dataclass(frozen=True, slots=True, order=True)
class ProcessId:
    """A process that cannot be mistaken for a later one: its id and its start, in ticks since boot."""

    pid: int
    start: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Identify a process; None if there is none, or only its zombie."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))

    def is_alive(self) -> bool:
        """Say whether this very process runs."""
        return ProcessId.of(self.pid) == self


@dataclass(slots=True)
class Record:
    """What runs for a state directory, written before or as soon as it exists."""

    state: Path
    boot: str = ""
    processes: set[ProcessId] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    shared_memory: set[str] = field(default_factory=set)

    @classmethod
    def load(cls, state: Path) -> Self:
        """Read the record of `state`; an empty one if there is none, or of an earlier boot."""
        try:
            data = json.loads((state / _RECORD).read_text("utf-8"))
            found = cls(
                state,
                str(data["boot"]),
                {ProcessId(int(pid), int(start)) for pid, start in data["processes"]},
                {str(link) for link in data["links"]},
                {str(path) for path in data["shared_memory"]},
            )
        except (OSError, ValueError, KeyError, TypeError):
            return cls(state, _boot_id())
        return found if found.boot == _boot_id() else cls(state, _boot_id())

    def save(self) -> None:
        """Write the record, atomically."""
        data = {
            "boot": self.boot,
            "processes": sorted((process.pid, process.start) for process in self.processes),
            "links": sorted(self.links),
            "shared_memory": sorted(self.shared_memory),
        }
        self.state.mkdir(parents=True, exist_ok=True)
        temporary = self.state / f"{_RECORD}.new"
        temporary.write_text(json.dumps(data), "utf-8")
        temporary.replace(self.state / _RECORD)


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()


def shared_memory(pid: int) -> set[str]:
    """Return the hot-restart files that a process has mapped: ours are to have none, others' are not ours."""
    try:
        return set(_SHARED_MEMORY.findall(Path(f"/proc/{pid}/maps").read_text("utf-8")))
    except OSError:
        return set()


def remove(state: Path, deadline: float = 10.0) -> None:
    """End what an earlier demo with this state directory left. Idempotent; waits `deadline` at most."""
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
    """Say what is left of a demo with this state directory, in words; nothing is the wanted answer.

    Looks at recorded processes, at every process that carries the state directory's mark (see `mark`), at
    links, and at hot-restart files that the demo's own processes had mapped.
    """
    record = Record.load(state)
    found = [f"process {process.pid} of the record" for process in record.processes if process.is_alive()]
    found += [f"process {pid}: {command[:120]}" for pid, command in _marked(state)]
    found += [f"network interface {link}" for link in record.links if _has_link(link)]
    found += [f"shared memory {path}" for path in record.shared_memory if Path(path).exists()]
    return tuple(sorted(found))


def wait_for_none(state: Path, deadline: float = 5.0) -> tuple[str, ...]:
    """Return what is left after at most `deadline` seconds: namespaces go in the kernel's own time."""
    limit = time.monotonic() + deadline
    while (found := find(state)) and time.monotonic() < limit:
        time.sleep(0.05)
    return found


def _has_link(link: str) -> bool:
    return link.startswith(LINK_PREFIX) and Path(f"/sys/class/net/{link}").exists()


def mark(state: Path) -> dict[str, str]:
    """Return the environment by which processes of this state directory's demo, and theirs, are known."""
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
