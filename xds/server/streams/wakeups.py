"""What wakes the event loop for gRPC: one look for all that has happened, however much that is.

gRPC's own thread writes a byte for each of its events, and its reader takes one byte, and all the events. Of
a hundred at once the first wake-up does the work, and ninety-nine find nothing: each is a turn of the loop.
"""

import contextlib
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from typing import Any, Final

AT_ONCE: Final = 4096
"""Bytes that are taken together: more events than that are seldom waiting."""


@contextlib.contextmanager
def once_for_all(loop: AbstractEventLoop) -> Iterator[None]:
    """Have gRPC, where it begins to use this loop in the block, be woken once for all that is there.

    It says to the loop what is to be called when there is something to read, and nobody else: so that is
    where it is listened to. One that uses the loop already goes on as it does.
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
    """Call back once for all bytes that are there, and take those that it leaves of them.

    Whoever writes one has noted its event before: the callback, which takes one byte, finds all the events.
    Where it raises, as it does at an event of a loop that is closed, the others are there still: so are their
    bytes, and it is called again. Nobody else may read here: gRPC has one loop in this process at a time.
    """
    more = woken.recv_into(into, AT_ONCE, socket.MSG_PEEK) - 1
    callback(*args)
    if more > 0:
        with contextlib.suppress(BlockingIOError):
            woken.recv_into(into, more)
