"""Supervisor of the demo's processes: start, wait for conditions, detect crashes, stop in order."""

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import meshwright.processes.command
from demo import leftovers
from demo.leftovers import ProcessId, Record
from meshwright.processes.command import Command

STOP_SECONDS: Final = 5.0
_SHORTEST_PAUSE, _LONGEST_PAUSE, _SHARE_OF_WAIT = 0.02, 0.25, 0.2
"""Pause between two checks: bounds in seconds, and share of the wait so far. A check costs CPU time."""
_TAIL: Final = 2000
COMMAND_SECONDS: Final = 120.0
"""Longest time in seconds of a short command: on a busy machine a start of `meshwright` alone takes many."""
_PIPES_SECONDS: Final = 5.0


class DemoError(Exception):
    """Error that ends the demo; the message has the cause and, if there is one, the log file."""


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A started process of the demo, and the log file with its output."""

    name: str
    process: asyncio.subprocess.Process
    log: Path

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self.process.pid

    def tail(self) -> str:
        """Return the last 2000 characters of the process's log; empty if the file cannot be read."""
        try:
            return self.log.read_text("utf-8", "replace")[-_TAIL:]
        except OSError:
            return ""


def bound_to_parent(argv: Sequence[str]) -> list[str]:
    """Prefix a command so that the kernel kills the process when its parent dies, even by SIGKILL."""
    # PR_SET_PDEATHSIG of prctl(2), set by setpriv, survives execve(2) of the command.
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *argv] if setpriv else list(argv)


class Supervisor:
    """Owner of all processes of a demo; as a context manager, stops them on exit.

    Each process has its own session. Ctrl-C therefore reaches only the demo, which stops the others in order.
    """

    def __init__(self, state: Path) -> None:
        self.record = Record.load(state)
        self._mark = leftovers.mark(state)
        self._running: list[ChildProcess] = []
        self._ends: list[Callable[[], None]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        # A second cancellation must not interrupt the stopping of processes.
        await asyncio.shield(self.stop_all())

    async def start(
        self, name: str, argv: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> ChildProcess:
        """Start a process that runs until it is stopped; the output goes to `log`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *bound_to_parent(argv),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {}), **self._mark},
                start_new_session=True,
            )
        running = ChildProcess(name, process, log)
        self._running.append(running)
        # Saved at once, so that the next demo finds the process even if this demo is killed now.
        if identity := ProcessId.read(process.pid):
            self.record.processes.add(identity)
            self.record.save()
        return running

    def forget(self, ended: ChildProcess) -> None:
        """Remove an ended process from the list of processes that must run."""
        self._running.remove(ended)

    def check(self) -> None:
        """Raise DemoError if a process that must run has ended."""
        for running in self._running:
            if running.process.returncode is not None:
                raise DemoError(
                    f"{running.name} ended with status {running.process.returncode}; see {running.log}:\n"
                    f"{running.tail()}"
                )

    def pid(self, name: str) -> int:
        """Return the pid of a running process by the name given to `start`."""
        return next(child_process.pid for child_process in self._running if child_process.name == name)

    def at_end(self, end: Callable[[], None]) -> None:
        """Register a function to call after all processes have ended; the last registered is called first."""
        self._ends.append(end)

    async def crash(self, name: str) -> None:
        """Kill a process with SIGKILL, as a crash would, and remove it from the expected processes."""
        running = next(child_process for child_process in self._running if child_process.name == name)
        self._running.remove(running)
        running.process.kill()
        await running.process.wait()

    async def until(
        self, event: str, condition: Callable[[], Awaitable[bool] | bool], deadline: float = 120.0
    ) -> None:
        """Wait until `condition` holds; raise DemoError after `deadline` seconds, or if a process ends."""
        began = time.monotonic()
        while True:
            self.check()
            answer = condition()
            if answer if isinstance(answer, bool) else await answer:
                return
            waited = time.monotonic() - began
            if waited > deadline:
                raise DemoError(f"did not happen within {deadline:.0f} s: {event}")
            await asyncio.sleep(min(max(waited * _SHARE_OF_WAIT, _SHORTEST_PAUSE), _LONGEST_PAUSE))

    async def stop_all(self) -> None:
        """Stop all processes, the last started first: SIGTERM, and SIGKILL after 5 seconds. Idempotent."""
        for running in self._running:
            # Read before the processes end, because the kernel has their mappings only while they run.
            self.record.shared_memory |= leftovers.shared_memory(running.pid)
        while self._running:
            running = self._running.pop()
            await _stop(running)
        self.record.processes.clear()
        self.record.save()
        while self._ends:
            self._ends.pop()()


async def _stop(running: ChildProcess) -> None:
    if running.process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        running.process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await running.process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            running.process.kill()
        await running.process.wait()


async def others_ended() -> None:
    """Wait for cancelled tasks, at most 10 seconds, so that they can clean up.

    `asyncio.gather` does not wait, and the end of the event loop would cancel the tasks again during cleanup.
    """
    ending = [
        task for task in asyncio.all_tasks() if task.cancelling() and task is not asyncio.current_task()
    ]
    if ending:
        await asyncio.wait(ending, timeout=2 * _PIPES_SECONDS)


async def run(
    argv: Sequence[str],
    *,
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
    deadline: float = COMMAND_SECONDS,
) -> str:
    """Run a short command and return its output; raise DemoError with its error output if it fails."""
    whole = {**os.environ, **(environment or {})}
    command = Command(bound_to_parent(argv), environment=whole, stdin=stdin.encode())
    try:
        ended = await meshwright.processes.command.run(command, deadline)
    except TimeoutError as error:
        raise DemoError(f"did not end within {deadline:.0f} s: {' '.join(argv)}") from error
    if ended.status:
        words = (ended.errors or ended.output).decode(errors="replace").strip()[-_TAIL:]
        raise DemoError(f"status {ended.status} from {' '.join(argv)}\n{words}")
    return ended.output.decode()
