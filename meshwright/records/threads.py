"""Calls of a store of records from threads, because a store belongs to one event loop.

Certificates and join tokens are handled in threads, which may wait. For example, a thread that records a new
certificate waits until the store has the record. The event loop itself must never wait for the store.
"""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, Final, TypeVar

from meshwright.records.contract import StoreUnavailableError

T = TypeVar("T")

PATIENCE_SECONDS: Final = 30.0
"""Longest wait of a thread, in seconds: several calls of the store, each within the store's time limit."""


class CallOnLoopError(RuntimeError):
    """Error for a blocking call on the event loop of the store: the call would wait for itself for ever."""


class ThreadCalls:
    """Runner of coroutines on the event loop of a store, for other threads, which wait for the result."""

    def __init__(self, loop: asyncio.AbstractEventLoop, patience: float = PATIENCE_SECONDS) -> None:
        self._loop = loop
        self._patience = patience

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and return its result or raise its error.

        Raises CallOnLoopError on the event loop of the store. Raises StoreUnavailableError after the patience
        and if the loop has ended: the work may be done then, as after each StoreUnavailableError.
        """
        if _running_loop() is self._loop:
            work.close()
            raise CallOnLoopError("this call waits for the store: call it in a thread (asyncio.to_thread)")
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:
            work.close()
            raise StoreUnavailableError("the event loop of the store has ended") from error
        try:
            return future.result(self._patience)
        except CancelledError:
            raise StoreUnavailableError("the server is stopping") from None
        except TimeoutError:
            if future.done():  # an error of the work itself
                raise
            future.cancel()
            raise StoreUnavailableError(
                f"the store has not answered for {self._patience:g} seconds"
            ) from None

    async def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine that runs on the event loop of the store; for coroutines of any event loop.

        Raises StoreUnavailableError if the loop of the store has ended.
        """
        if _running_loop() is self._loop:
            return await work
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:
            work.close()
            raise StoreUnavailableError("the event loop of the store has ended") from error
        return await asyncio.wrap_future(future)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
