"""Event loop in simulated time: a wait of an hour, for example, takes no real time."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class NothingDueError(RuntimeError):
    """Error for a loop without a timer: all tasks wait for each other."""


class _JumpSelector(selectors.DefaultSelector):
    """Selector with a clock, which advances in place of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now; a wait of `timeout` seconds passes at once."""
        if timeout is None:
            raise NothingDueError("all tasks wait for each other, and no timer is due")
        self.now += max(0.0, timeout)
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop in simulated time, from 0 seconds. Work in other threads is done at once, in this one."""

    def __init__(self) -> None:
        self._jumps = _JumpSelector()
        super().__init__(self._jumps)
        # Fixed, because the resolution of the real clock decides which timers run together.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Return the simulated time in seconds."""
        return self._jumps.now

    def run_in_executor(self, executor: object, func: Callable[[*Ts], T], *args: *Ts) -> "asyncio.Future[T]":
        """Call a function now, and return its result."""
        # At once, because a thread would finish at a real time, and the run would differ between machines.
        del executor
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - the error belongs to the caller
            future.set_exception(error)
        return future


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in simulated time, and return its result."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(work)
