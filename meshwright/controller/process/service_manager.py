"""Notification of a service manager such as systemd (sd_notify(3)), and the manager's watchdog.

Our own code, because a notification is a single datagram, for example `READY=1`, and the libraries need C
code or are unmaintained.
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
"""Seconds between two checks until the program is ready."""
LATER_SECONDS: Final = 5.0
"""Seconds between two later status messages, which are for people."""

_LONGEST_STATUS: Final = 1000

_log = structlog.get_logger("controller.process.service_manager")

Missing = Callable[[], Awaitable[tuple[str, ...]]]
"""Function that returns the parts that are not ready yet; empty if the program is ready."""
Remarks = Callable[[], tuple[str, ...]]
"""Function that returns remarks about degraded parts."""


def socket_address(text: str) -> str | None:
    """Return the address in NOTIFY_SOCKET (path, or `@name`), or `None` for any other kind of address."""
    if len(text) < 2 or text[0] not in "/@":
        return None
    return "\0" + text[1:] if text[0] == "@" else text


def watchdog_seconds(microseconds: str, pid: str, own: int) -> float | None:
    """Return the seconds until a silent process is killed.

    `None` without a watchdog for the process `own`.
    """
    if pid not in ("", str(own)) or not microseconds.isascii() or not microseconds.isdigit():
        return None
    return int(microseconds) / 1e6 or None


def sentence(missing: tuple[str, ...], remarks: tuple[str, ...]) -> str:
    """Return the status in one line; a remark may be the reason why the program is not ready.

    For example: `not ready: first snapshots`.
    """
    if missing:
        words = f"not ready: {', '.join((*remarks, *missing))}"
    else:
        words = "; ".join(("ready", *(f"but: {remark}" for remark in remarks)))
    return " ".join(words.split())[:_LONGEST_STATUS]


class ServiceManager:
    """The manager of this process; without an address all notifications are ignored.

    `watchdog` is in seconds. Calls never block: if the manager's queue is full, the message is repeated
    later.
    """

    def __init__(self, address: str | None = None, watchdog: float | None = None) -> None:
        self._address = address
        self._watchdog = watchdog
        self._ready = False
        self._stopping = False
        self._status = ""
        self._failing = False

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str]) -> Self:
        """Read and remove the environment variables, because a child process must not notify in our name."""
        text, microseconds, pid = (
            environment.pop(name, "") for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
        )
        address = socket_address(text)
        if text and address is None:
            _log.warning(
                "NOTIFY_SOCKET ignored: it is not a Unix socket; the service manager is not notified",
                value=text,
            )
        return cls(address, watchdog_seconds(microseconds, pid, os.getpid()))

    @property
    def listens(self) -> bool:
        """Return whether systemd receives notifications from this process."""
        return self._address is not None

    async def followed(self, missing: Missing, remarks: Remarks) -> None:
        """Notify systemd once of readiness, and of the status after each change, until cancelled."""
        while True:
            lacking = await missing()
            if not (self._stopping or lacking or self._ready):
                self._ready = self._send("READY=1")
            self._report_status(sentence(lacking, remarks()))
            await asyncio.sleep(LATER_SECONDS if self._ready else SOON_SECONDS)

    async def fed(self, alive: Callable[[], bool]) -> None:
        """Notify systemd's watchdog twice per interval while `alive` returns True, until cancelled."""
        if self._watchdog is None:
            # Waits for ever, because the task must not end.
            await asyncio.Event().wait()
            return
        while True:
            if alive():
                self._send("WATCHDOG=1")
            await asyncio.sleep(self._watchdog / 2)

    @contextlib.contextmanager
    def reloading(self) -> Iterator[None]:
        """Notify systemd at the start and at the end of a reload, if the program is ready."""
        if not self._ready or self._stopping:
            yield
            return
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
        try:
            yield
        finally:
            # If the queue is full, `followed` repeats the message.
            self._ready = self._send("READY=1")

    def stopping(self) -> None:
        """Notify systemd of the shutdown, once."""
        if not self._stopping:
            self._stopping = True
            self._send("STOPPING=1", "STATUS=stopping")

    def _report_status(self, status: str) -> None:
        if status != self._status and not self._stopping and self._send(f"STATUS={status}"):
            self._status = status

    def _send(self, *fields: str) -> bool:
        """Send fields to systemd's socket; return whether this succeeded. A repeated error is logged once."""
        if self._address is None:
            return True
        try:
            # A new socket each time, because a restarted manager has a new one.
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sending:
                sending.sendto("\n".join(fields).encode(errors="backslashreplace"), self._address)
        except OSError as error:
            if not self._failing:
                _log.warning("service manager notification failed", reason=error.strerror, fields=fields)
            self._failing = True
            return False
        self._failing = False
        return True
