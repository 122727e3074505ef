"""Supervisor of Envoy's processes: carries out the actions of the lifecycle, and reports events back."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Coroutine, Mapping
from typing import Final, Protocol

import structlog

from meshwright.agent.envoy.command import EnvoyOptions, serve, validate
from meshwright.agent.envoy.die_with_parent import NOT_STARTED, bound
from meshwright.agent.envoy.lifecycle import Action, End, EnvoyEnd, EpochKill, EpochStart, Lifecycle
from meshwright.agent.envoy.runtime import RuntimeDirectory, remove_shared_memory
from meshwright.agent.envoy.words import relay
from meshwright.agent.errors import AgentError
from meshwright.processes.command import Command, run

PATIENCE_SECONDS: Final = 60.0
"""Seconds for a validation.

Envoy needs a fraction of a second of CPU time, which takes long on a starting machine.
"""
_GENTLE_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.05
_LAST_WORDS_SECONDS: Final = 1.0

_log = structlog.get_logger("agent.envoy.supervisor")


class EnvoyRejected(AgentError):
    """Envoy rejects a bootstrap, ends without a result, or cannot be run; the message has its output."""


class CheckUnfinished(EnvoyRejected):
    """Envoy has not finished the check of a bootstrap in time, so another check may accept it."""


class Admin(Protocol):
    """The part of Envoy's admin interface that the supervisor uses."""

    async def live_epoch(self) -> int | None:
        """Return the restart epoch of the answering Envoy if the Envoy is live, or None."""


async def validated(
    options: EnvoyOptions, runtime: RuntimeDirectory, seconds: float = PATIENCE_SECONDS
) -> None:
    """Let Envoy validate the candidate bootstrap; raise EnvoyRejected, with Envoy's output if any."""
    command = Command(bound(validate(options, runtime.candidate)), merged=True)
    try:
        ended = await run(command, seconds)
    except TimeoutError:
        raise CheckUnfinished(
            f"Envoy did not finish the check of {runtime.candidate} within {seconds:g} s"
        ) from None
    words = " ".join(ended.output.decode(errors="replace").split())[-1000:]
    if ended.status == NOT_STARTED:
        raise EnvoyRejected(words)
    if ended.status < 0:
        raise EnvoyRejected(
            f"Envoy was ended by signal {-ended.status} during the check of {runtime.candidate}"
        )
    if ended.status:
        raise EnvoyRejected(f"Envoy does not accept {runtime.candidate}: {words}")


class Supervisor:
    """The Envoy processes of one proxy: a serving one, and sometimes a draining one."""

    def __init__(
        self, options: EnvoyOptions, runtime: RuntimeDirectory, lifecycle: Lifecycle, admin: Admin
    ) -> None:
        self._options = options
        self._runtime = runtime
        self._lifecycle = lifecycle
        self._admin = admin
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._ending: EnvoyEnd | None = None
        self._failed: BaseException | None = None
        self._base_id: int | None = None
        self._environment: Mapping[str, str] | None = None

    @property
    def pids(self) -> dict[int, int]:
        """Return the process ID of every live epoch."""
        return {epoch: process.pid for epoch, process in sorted(self._processes.items())}

    def not_running(self) -> str:
        """Return a sentence with the next step if every Envoy has ended; empty while one runs."""
        return self._lifecycle.not_running()

    async def configured(self, configuration: str, environment: Mapping[str, str] | None = None) -> None:
        """Bring a configuration into use, identified by a digest; the bootstrap file must be in place.

        Later Envoys get this environment; None means the agent's.
        """
        self._environment = environment
        await self._carry_out(self._lifecycle.configured(configuration, time.monotonic()))

    async def stop(self) -> None:
        """End every Envoy; `run` returns when they have ended."""
        await self._carry_out(self._lifecycle.stop())

    async def run(self) -> EnvoyEnd:
        """Keep Envoy running; return why Envoy ended. Raises the error of a background task."""
        try:
            while self._ending is None:
                await self._wait()
                if self._failed is not None:
                    raise self._failed
                await self._carry_out(self._lifecycle.tick(time.monotonic()))
            return self._ending
        finally:
            await self._end_all()

    async def _wait(self) -> None:
        retry_at = self._lifecycle.retry_at
        timeout = None if retry_at is None else max(0.0, retry_at - time.monotonic())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout)
        self._changed.clear()

    async def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case EpochStart(epoch):
                    await self._start(epoch)
                case EpochKill(epoch, gently):
                    self._kill(epoch, gently=gently)
                case End(why):
                    self._ending = why
                    self._changed.set()

    async def _start(self, epoch: int) -> None:
        if epoch == 0:
            self._forget_shared_memory()
            # Epoch 0 writes a new base ID. A later epoch must not read that of an earlier run.
            self._runtime.base_id.unlink(missing_ok=True)
        else:
            self._base_id = self._runtime.read_base_id()
        command = serve(self._options, self._runtime.bootstrap, epoch, self._base_id, self._runtime.base_id)
        try:
            process = await asyncio.create_subprocess_exec(
                *bound(command),
                stdin=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE if self._options.logged else None,
                env=self._environment,
                start_new_session=True,  # Ctrl-C must reach only the agent, which ends Envoy in order
            )
        except OSError as error:  # for example, the system has too many processes
            _log.error("envoy not started; the agent tries again", epoch=epoch, reason=error.strerror)
            await self._carry_out(self._lifecycle.not_started(epoch, time.monotonic()))
            self._changed.set()  # a retry is scheduled
            return
        _log.info("envoy started", epoch=epoch, pid=process.pid)
        if process.stderr is not None:
            self._spawn(f"envoy {epoch} says", relay(process.stderr))
        self._processes[epoch] = process
        if self._lifecycle.epochs[epoch].killed:  # killed while it was being started
            self._kill(epoch, gently=False)
        self._spawn(f"envoy {epoch} ends", self._watch(epoch, process))
        self._spawn(f"envoy {epoch} is live", self._settle(epoch, process))

    def _spawn(self, name: str, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        """Make `run` raise the error of a task; otherwise the end of an Envoy could go unnoticed."""
        self._tasks.discard(task)
        if not task.cancelled() and (failed := task.exception()) is not None:
            self._failed = self._failed or failed
            self._changed.set()

    async def _watch(self, epoch: int, process: asyncio.subprocess.Process) -> None:
        status = await process.wait()
        del self._processes[epoch]
        await self._exited(epoch, status)

    async def _exited(self, epoch: int, status: int) -> None:
        if not self._processes:
            self._forget_shared_memory()
        actions = self._lifecycle.exited(epoch, status, time.monotonic())
        _log.info("envoy exited", epoch=epoch, status=status, tries_left=self._lifecycle.tries_left)
        await self._carry_out(actions)
        self._changed.set()  # a retry may be scheduled

    async def _settle(self, epoch: int, process: asyncio.subprocess.Process) -> None:
        """Wait until the Envoy of an epoch is live, and then inform the lifecycle."""
        # Envoy sends no event when an epoch is live, so the admin interface is polled.
        while process.returncode is None:
            if await self._admin.live_epoch() == epoch:
                await self._carry_out(self._lifecycle.settled(epoch, time.monotonic()))
                return
            await asyncio.sleep(_POLL_SECONDS)

    def _kill(self, epoch: int, *, gently: bool) -> None:
        process = self._processes.get(epoch)
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM if gently else signal.SIGKILL)
        if gently:
            # An Envoy that hangs in its shutdown must not keep the agent from ending.
            asyncio.get_running_loop().call_later(_GENTLE_SECONDS, self._kill_if_alive, process)

    @staticmethod
    def _kill_if_alive(process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    def _forget_shared_memory(self) -> None:
        """Remove Envoy's shared memory after the end of all epochs, because Envoy leaves it behind."""
        base_id = self._runtime.read_base_id()
        if base_id is not None:
            remove_shared_memory(base_id)
        self._base_id = None

    async def _end_all(self) -> None:
        for process in self._processes.values():
            self._kill_if_alive(process)
        for process in [*self._processes.values()]:
            await process.wait()
        self._forget_shared_memory()
        words = [task for task in self._tasks if task.get_name().endswith(" says")]
        if words:  # the last output of an ended Envoy
            await asyncio.wait(words, timeout=_LAST_WORDS_SECONDS)
        for task in self._tasks:
            task.cancel()
