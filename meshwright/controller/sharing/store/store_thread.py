"""Event loop of a store of records, in a thread of its own.

Certificates and the ledger are also used by code that waits, for example at the start of the server. With a
loop of its own, the store answers while the server's event loop waits for it.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Final, TypeVar

import structlog

from meshwright.records.contract import RecordsError, StoreUnavailableError

T = TypeVar("T")

AGAIN_SECONDS: Final = 2.0
"""Seconds until a task of the store is started again after an error of the store."""

STEADY_SECONDS: Final = 10.0
"""Seconds after which a task that was started again counts as working."""

_ENDED: Final = "the event loop of the store has ended"

_log = structlog.get_logger("controller.sharing")


class StoreThread:
    """A thread with an event loop, and the tasks on it. All methods but `note` are for other threads.

    `again` is the time in seconds until a failed task is started again, `steady` the time after which a task
    counts as working.
    """

    def __init__(self, again: float = AGAIN_SECONDS, steady: float = STEADY_SECONDS) -> None:
        self._again, self._steady_after = again, steady
        self._lock, self._is_closed = threading.Lock(), False
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="shared-store", daemon=True)
        self._futures: dict[str, Future[None]] = {}
        self._errors: dict[str, str] = {}
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        """Return whether the thread has ended, or will end now."""
        return self._is_closed

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and return its result or raise its error.

        Raises StoreUnavailableError if the thread ends meanwhile.
        """
        with self._lock:
            if self._is_closed:
                work.close()
                raise StoreUnavailableError(_ENDED)
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except CancelledError:
            raise StoreUnavailableError("the server is stopping") from None

    def start(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task that should run for ever. After a RecordsError it is started again.

        Each task has a name of its own: nobody would notice the end of one of two with the same name. Raises
        StoreUnavailableError after the end of the thread, because a server may stop while it still opens.
        """
        if name in self._futures:
            raise ValueError(f"the task {name!r} of the store is started twice")
        with self._lock:
            if self._is_closed:
                raise StoreUnavailableError(_ENDED)
            self._futures[name] = asyncio.run_coroutine_threadsafe(self._repeated(name, work), self.loop)

    async def ended(self, name: str) -> None:
        """Wait for the end of a task, which only another error than a RecordsError brings; raise that error.

        For the server's event loop, where the end of a task ends the server.
        """
        await asyncio.shield(asyncio.wrap_future(self._futures[name]))

    def names(self) -> tuple[str, ...]:
        """Return the names of all tasks."""
        return tuple(self._futures)

    def remarks(self) -> tuple[str, ...]:
        """Return a remark for each task that an error of the store has ended, until it works again."""
        return tuple(f"{name}: {error}" for name, error in sorted(self._errors.items()))

    def note(self, name: str, error: str) -> None:
        """Set the error of a task, empty for none; log changes."""
        before = self._errors.get(name, "")
        if error == before:
            return
        if error:
            self._errors[name] = error
            _log.error("shared store cannot be used", task=name, reason=error)
        else:
            del self._errors[name]
            _log.info("shared store can be used again", task=name)

    def close(self, disconnect: Callable[[], Coroutine[Any, Any, object]] | None = None) -> None:
        """Cancel the tasks, call `disconnect`, and end the thread; a second call has no effect.

        The connection outlives the tasks, because they withdraw this server from the store: another one
        leads at once then, and not only after the time limit of a lease.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        # Calls that began before are tasks by now, or become tasks before this one.
        asyncio.run_coroutine_threadsafe(_cancelled(), self.loop).result()
        if disconnect is not None:
            asyncio.run_coroutine_threadsafe(disconnect(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        self.loop.run_forever()
        # A call that came after the last one, for example of the ledger, would wait for its result.
        self.loop.run_until_complete(_cancelled())
        self.loop.close()

    async def _repeated(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            errors = list[str]()
            task = asyncio.create_task(work(), name=name)
            try:
                await self._steady(name, task)
            except* RecordsError as failed:
                errors = [str(error) for error in failed.exceptions]
            finally:
                if not task.cancelling():  # a second time would interrupt what the task does at its end
                    task.cancel()
            self.note(name, "; ".join(errors) or "the task has ended")
            await asyncio.sleep(self._again)

    async def _steady(self, name: str, task: asyncio.Task[None]) -> None:
        """Wait for the task; withdraw the error of an earlier run once the task has worked for a while."""
        done, _ = await asyncio.wait((task,), timeout=self._steady_after)
        if not done:
            self.note(name, "")
        await task


async def _cancelled() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
