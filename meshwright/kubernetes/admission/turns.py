"""One thread for the work of reviews, in which clients take turns.

API servers ask about the objects of many clients. Each client (`Review.client`) has a queue of its own, and
the thread takes the next job from the client that has waited longest for a turn. A client with many or large
objects therefore delays another client by one job at most. For example, a namespace that creates 1,000
objects delays a single object in another namespace by the check of one object.

The number of jobs is bounded: one client has at most MOST_OF_ONE waiting jobs, and all clients together have
MOST. When all places are taken, a newcomer replaces the newest job of the client with the most jobs.

A job ends with its caller. A waiting job is dropped; a running job notices it through `check`, which the job
calls between its steps and which then raises LateError.

All methods must be called on the event loop; only the work and `check` run in the thread.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final, TypeVar

import structlog

MOST_OF_ONE: Final = 32
"""Maximum number of waiting jobs of one client."""

MOST: Final = 256
"""Maximum number of waiting jobs of all clients together."""

T = TypeVar("T")

Check = Callable[[], None]
"""Raises LateError if the caller has stopped waiting for the work."""

_log = structlog.get_logger("admission.turns")


class LateError(Exception):
    """The caller has stopped waiting, so the work ends."""


class FullError(Exception):
    """The queues have no room for the job, because its client has too many waiting jobs already."""


def unhurried() -> None:
    """Do nothing: the `Check` of a caller without a time limit."""


@dataclass(slots=True, eq=False)
class _Job:
    """A function for the thread, with the future of the function's result."""

    work: Callable[[Check], Any]
    result: asyncio.Future[Any]
    dropped: Event = field(default_factory=Event)

    def run(self) -> Any:  # noqa: ANN401 - what the work returns
        """Return the result of the job's function; called in the thread. May raise LateError."""
        self.check()
        return self.work(self.check)

    def check(self) -> None:
        """Raise LateError if the caller has stopped waiting for the result."""
        if self.dropped.is_set():
            raise LateError


class Turns:
    """Queues of jobs, one for each client, for the single thread `name`; clients take turns."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._queues: dict[str, deque[_Job]] = {}  # the client whose turn is next comes first
        self._running: _Job | None = None

    @property
    def waiting(self) -> int:
        """Return the number of jobs that wait or run."""
        return sum(map(len, self._queues.values())) + (self._running is not None)

    async def run(self, client: str, work: Callable[[Check], T]) -> T:
        """Return the result of `work`, done in the client's turn. Raises FullError and the errors of `work`.

        Cancelling the caller drops the job.
        """
        self._make_room(client)
        job = _Job(work, asyncio.get_running_loop().create_future())
        self._queues.setdefault(client, deque()).append(job)
        self._start()
        try:
            result: T = await job.result
        except asyncio.CancelledError:
            self._drop(client, job)
            raise
        return result

    def close(self) -> None:
        """Start no more work."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _make_room(self, client: str) -> None:
        own = len(self._queues.get(client, ()))
        if own >= MOST_OF_ONE:
            raise FullError
        if sum(map(len, self._queues.values())) < MOST:
            return
        largest = max(self._queues, key=lambda queue: len(self._queues[queue]))
        if len(self._queues[largest]) <= own + 1:
            raise FullError
        last = self._queues[largest].pop()
        if not last.result.done():
            last.result.set_exception(FullError())

    def _start(self) -> None:
        """Start the next client's job if the thread is free."""
        if self._running is not None or not self._queues:
            return
        client, queue = next(iter(self._queues.items()))
        del self._queues[client]
        job = self._running = queue.popleft()
        if queue:
            self._queues[client] = queue  # behind all others
        ended = asyncio.get_running_loop().run_in_executor(self._thread, job.run)
        ended.add_done_callback(lambda future: self._ended(job, future))

    def _ended(self, job: _Job, future: asyncio.Future[Any]) -> None:
        self._running = None
        error = None if future.cancelled() else future.exception()
        if job.result.done():
            if error is not None and not isinstance(error, LateError):
                _log.error(
                    "a check failed after its client had stopped waiting",
                    error=f"{type(error).__name__}: {error}",
                )
        elif future.cancelled():
            job.result.cancel()
        elif error is not None:
            job.result.set_exception(error)
        else:
            job.result.set_result(future.result())
        self._start()

    def _drop(self, client: str, job: _Job) -> None:
        job.dropped.set()
        queue = self._queues.get(client)
        if queue is not None and job in queue:
            queue.remove(job)
            if not queue:
                del self._queues[client]
