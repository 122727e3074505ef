"""Wake-ups of the event loop for gRPC, reduced to one for all events that are waiting.

gRPC's own thread writes one byte for each event. Its reader on the loop takes one byte but handles all
events. With a hundred events at once, the first wake-up does all the work, and the other ninety-nine find
none; each of them is a turn of the loop.
"""

import contextlib
import socket
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from typing import Any, Final

AT_ONCE: Final = 4096
"""Bytes that are read together; more events rarely wait."""

_READING: Final = threading.Lock()
"""Held by the event loop that reads, because all loops of a process read the same socket."""


@contextlib.contextmanager
def once_for_all(loop: AbstractEventLoop) -> Iterator[None]:
    """Reduce wake-ups for a gRPC server or client that starts to use this loop inside the block.

    gRPC registers its callback with `add_reader`, so that method is wrapped during the block. A gRPC server
    that already uses the loop is not affected. If gRPC uses several loops of a process, each must start
    inside such a block.
    """
    add_reader = loop.add_reader

    def listen(fd: Any, callback: Callable[..., object], *args: Any) -> None:  # noqa: ANN401 - as the loop's
        if isinstance(fd, socket.socket):
            add_reader(fd, _gathered, fd, bytearray(AT_ONCE), callback, *args)
        else:
            add_reader(fd, callback, *args)

    loop.add_reader = listen  # type: ignore[method-assign,assignment] # for the block, and for this loop alone
    try:
        yield
    finally:
        del loop.add_reader


def _gathered(woken: socket.socket, into: bytearray, callback: Callable[..., object], *args: object) -> None:
    """Run the callback once for all waiting bytes, then remove the rest of them.

    gRPC's thread queues an event before it writes the byte, so the callback, which takes one byte, finds all
    events, also those of other loops. If the callback raises, as it does for an event of a closed loop, the
    other events remain, and so do their bytes, and it is called again. Another loop must not read meanwhile:
    a byte that was written after the callback would be removed, and its event would wait for the next one.
    """
    with _READING, contextlib.suppress(BlockingIOError):  # the other loop has taken all bytes
        more = woken.recv_into(into, AT_ONCE, socket.MSG_PEEK) - 1
        callback(*args)
        if more > 0:
            woken.recv_into(into, more)
