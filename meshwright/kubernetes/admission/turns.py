"""One thread for the work of reviews, in which clients take turns.

API servers ask about the objects of many clients. Each client (`Review.client`) has a queue of its own, and
the thread takes the next piece of work from the client that has waited longest for a turn. A client with many
or large objects therefore delays another client by one piece of work at most.

Work is bounded in number: a client has MOST_OF_ONE pieces waiting at most, and all clients together MOST.
When all places are taken, a newcomer takes the place of the newest work of the client that has most of them.

Work ends with whoever waits for it. Work that waits is dropped; work that runs is told by `check`, which it
calls between its steps and which raises LateError.

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
"""Pieces of work of one client that may wait."""

MOST: Final = 256
"""Pieces of work of all clients together that may wait."""

T = TypeVar("T")

Check = Callable[[], None]
"""Raises LateError when nobody waits for the work any more."""

_log = structlog.get_logger("admission.turns")


class LateError(Exception):
    """Nobody waits for the work any more, so that it stops."""


class FullError(Exception):
    """There is no room for the work: its client has too much work waiting already."""


def unhurried() -> None:
    """Let the work go on: somebody waits for it, however long it takes."""


@dataclass(slots=True, eq=False)
class _Job:
    """A piece of work, and who waits for its result."""

    work: Callable[[Check], Any]
    result: asyncio.Future[Any]
    dropped: Event = field(default_factory=Event)

    def run(self) -> Any:  # noqa: ANN401 - what the work returns
        """Do the work, in the thread."""
        self.check()
        return self.work(self.check)

    def check(self) -> None:
        """Raise LateError when nobody waits for the result any more."""
        if self.dropped.is_set():
            raise LateError


class Turns:
    """The queues, and the thread `name`. `waiting` is the number of pieces that wait or run."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._queues: dict[str, deque[_Job]] = {}  # the client whose turn is next comes first
        self._running: _Job | None = None

    @property
    def waiting(self) -> int:
        """How many pieces of work wait or run."""
        return sum(map(len, self._queues.values())) + (self._running is not None)

    async def run(self, client: str, work: Callable[[Check], T]) -> T:
        """Return what the work returns in the client's turn. Raises FullError, and whatever the work raises.

        A caller that is cancelled drops the work.
        """
        self._make_room(client)
        job = _Job(work, asyncio.get_running_loop().create_future())
        self._queues.setdefault(client, deque()).append(job)
        self._start()
        try:
            found: T = await job.result
        except asyncio.CancelledError:
            self._drop(client, job)
            raise
        return found

    def close(self) -> None:
        """Begin no more work."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _make_room(self, client: str) -> None:
        own = len(self._queues.get(client, ()))
        if own >= MOST_OF_ONE:
            raise FullError
        if sum(map(len, self._queues.values())) < MOST:
            return
        largest = max(self._queues, key=lambda each: len(self._queues[each]))
        if len(self._queues[largest]) <= own + 1:
            raise FullError
        last = self._queues[largest].pop()
        if not last.result.done():
            last.result.set_exception(FullError())

    def _start(self) -> None:
        """Begin the work of the client whose turn it is, if the thread is free."""
        if self._running is not None or not self._queues:
            return
        client, queue = next(iter(self._queues.items()))
        del self._queues[client]
        job = self._running = queue.popleft()
        if queue:
            self._queues[client] = queue  # behind all others
        ended = asyncio.get_running_loop().run_in_executor(self._thread, job.run)
        ended.add_done_callback(lambda found: self._ended(job, found))

    def _ended(self, job: _Job, found: asyncio.Future[Any]) -> None:
        self._running = None
        error = None if found.cancelled() else found.exception()
        if job.result.done():
            if error is not None and not isinstance(error, LateError):
                _log.error(
                    "work for a client that no longer waits failed", error=f"{type(error).__name__}: {error}"
                )
        elif found.cancelled():
            job.result.cancel()
        elif error is not None:
            job.result.set_exception(error)
        else:
            job.result.set_result(found.result())
        self._start()

    def _drop(self, client: str, job: _Job) -> None:
        job.dropped.set()
        queue = self._queues.get(client)
        if queue is not None and job in queue:
            queue.remove(job)
            if not queue:
                del self._queues[client]
