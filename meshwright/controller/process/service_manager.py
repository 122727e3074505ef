"""What a service manager, such as systemd, is told of this process: sd_notify(3), and its watchdog.

Own code: it is one datagram, and the libraries for it bring C or have no keeper.
"""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Final, Self

import structlog

SOON_SECONDS: Final = 0.25
"""How often it is asked whether the program is ready, before it is."""
LATER_SECONDS: Final = 5.0
"""How often afterwards: what is said then is for people."""

_LONGEST_STATUS: Final = 1000

_log = structlog.get_logger("controller.process.service_manager")

Missing = Callable[[], Awaitable[tuple[str, ...]]]
"""What keeps a program from being ready; nothing if it is."""
Remarks = Callable[[], tuple[str, ...]]
"""What is wrong besides."""


def socket_address(text: str) -> str | None:
    """Return where the manager listens, by its variable; None if that is no Unix socket: path, or `@name`."""
    if len(text) < 2 or text[0] not in "/@":
        return None
    return "\0" + text[1:] if text[0] == "@" else text


def watchdog_seconds(microseconds: str, pid: str, own: int) -> float | None:
    """Return after how long a silent process is killed; None where nobody watches this one (`own`)."""
    if pid not in ("", str(own)) or not microseconds.isascii() or not microseconds.isdigit():
        return None
    return int(microseconds) / 1e6 or None


def sentence(missing: tuple[str, ...], remarks: tuple[str, ...]) -> str:
    """Say in one line how the program is; what is wrong besides may be why it is not ready."""
    if missing:
        words = f"not ready: {', '.join((*remarks, *missing))}"
    else:
        words = "; ".join(("ready", *(f"but: {each}" for each in remarks)))
    return " ".join(words.split())[:_LONGEST_STATUS]


class ServiceManager:
    """Who started this process and waits for its word; nobody does without an address.

    `watchdog` is in seconds. Nothing here blocks: what the manager has no room for is said again.
    """

    def __init__(self, address: str | None = None, watchdog: float | None = None) -> None:
        self._address = address
        self._watchdog = watchdog
        self._ready = False
        self._stopping = False
        self._status = ""
        self._failing = False

    @classmethod
    def of(cls, environment: MutableMapping[str, str]) -> Self:
        """Read the variables, and take them away: a child that finds them would speak for this process."""
        text, microseconds, pid = (
            environment.pop(name, "") for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
        )
        address = socket_address(text)
        if text and address is None:
            _log.warning("NOTIFY_SOCKET is no Unix socket: nobody is told when this is ready", value=text)
        return cls(address, watchdog_seconds(microseconds, pid, os.getpid()))

    @property
    def listens(self) -> bool:
        """Say whether anybody is to be told anything."""
        return self._address is not None

    async def followed(self, missing: Missing, remarks: Remarks) -> None:
        """Say that the program is ready as soon as it is, and how it is, until cancelled."""
        while True:
            lacking = await missing()
            if not (self._stopping or lacking or self._ready):
                self._ready = self._tell("READY=1")
            self._say(sentence(lacking, remarks()))
            await asyncio.sleep(LATER_SECONDS if self._ready else SOON_SECONDS)

    async def fed(self, alive: Callable[[], bool]) -> None:
        """Say twice in its time that this event loop turns, as long as `alive`, until cancelled."""
        if self._watchdog is None:
            await asyncio.Event().wait()
            return
        while True:
            if alive():
                self._tell("WATCHDOG=1")
            await asyncio.sleep(self._watchdog / 2)

    @contextlib.contextmanager
    def reloading(self) -> Iterator[None]:
        """Say that settings are read again, and when that is over; what is not ready yet stays so."""
        if not self._ready or self._stopping:
            yield
            return
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
        try:
            yield
        finally:
            # If there is no room for the word, `followed` says it.
            self._ready = self._tell("READY=1")

    def stopping(self) -> None:
        """Say that the program ends, once."""
        if not self._stopping:
            self._stopping = True
            self._tell("STOPPING=1", "STATUS=stopping")

    def _say(self, status: str) -> None:
        if status != self._status and not self._stopping and self._tell(f"STATUS={status}"):
            self._status = status

    def _tell(self, *fields: str) -> bool:
        """Send fields, and say whether they are under way; what keeps them from it is logged once."""
        if self._address is None:
            return True
        try:
            # A socket for each: the manager's may be another one after it was restarted.
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sending:
                sending.sendto("\n".join(fields).encode(errors="backslashreplace"), self._address)
        except OSError as error:
            if not self._failing:
                _log.warning("the service manager is not told", reason=error.strerror, fields=fields)
            self._failing = True
            return False
        self._failing = False
        return True
