"""An event loop in a separate thread, for callers that block until the work is done."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from certs.errors import IssuerError

T = TypeVar("T")


class EventLoopThread:
    """Thread for coroutines within a context, which is open as long as the loop runs.

    Methods may be called from any other thread. The thread is a daemon. Raises IssuerError if the loop or the
    context cannot be opened.
    """

    def __init__(self, name: str, within: AbstractAsyncContextManager[object]) -> None:
        self._within = within
        self._lock = threading.Lock()
        self._is_over = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runs = threading.Event()
        self._over: asyncio.Event
        self._lacking: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._runs.wait()
        if self._lacking is not None:
            raise IssuerError(f"certificates cannot be requested: {self._lacking}") from self._lacking

    def do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine and return its result.

        Raises the coroutine's error, or IssuerError after the end of the loop.
        """
        done: Future[T]
        with self._lock:
            # Within the lock, because a coroutine submitted after the end of the loop would never finish.
            if self._is_over or self._loop is None:
                raise IssuerError("the server is stopping")
            done = asyncio.run_coroutine_threadsafe(work(), self._loop)
        try:
            return done.result()
        except CancelledError:
            raise IssuerError("the server was stopped before the answer arrived") from None

    def close(self) -> None:
        """Cancel all work on the thread's event loop, and return when all of it has ended."""
        with self._lock:
            if not self._is_over and self._loop is not None:
                self._loop.call_soon_threadsafe(self._over.set)
            self._is_over = True
        self._thread.join()

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._main())
        except Exception as error:  # before the loop ran: raised to the caller that waits for it
            if self._loop is not None:
                raise
            self._lacking = error
        finally:
            # After an error too, because the constructor waits for the event.
            self._runs.set()

    async def _main(self) -> None:
        self._over = asyncio.Event()
        async with self._within:
            self._loop = asyncio.get_running_loop()
            self._runs.set()
            await self._over.wait()
            await _ended()


async def _ended() -> None:
    """Cancel all tasks of the event loop except the current one, and wait until they have ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
