"""Calls on the server's event loop from the thread of the store."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVarTuple

Ts = TypeVarTuple("Ts")


class ServerLoop:
    """The event loop on which the server was made. `call` is for other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def call(self, function: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call a function soon; a call after the end of the event loop is left out."""
        with suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(function, *args)
