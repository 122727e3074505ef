"""aiohttp servers: over TCP, and over a Unix socket for the owner only."""

import asyncio
import contextlib
import os
import socket
import ssl
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import structlog
from aiohttp import web

from meshwright.serving.runners import runner

SOCKET_NAME: Final = "meshwright.sock"
CONNECTIONS: Final = 64
"""Open connections of a server: more than probes, scrapers and people need at a time."""

_PATH_LIMIT: Final = 107  # sun_path of Linux without the terminating zero byte
_DRAIN_SECONDS: Final = 1.0


_log = structlog.get_logger("admin.http")


class SocketError(Exception):
    """Error for a failure to create the Unix socket. The message is one sentence with the cause."""


def unix_socket(path: Path) -> socket.socket:
    """Listen on a Unix socket (mode 0600) at `path`. Raises SocketError.

    The socket file of a stopped server is replaced. The socket of a running server is an error.
    """
    if len(os.fsencode(path)) > _PATH_LIMIT:
        raise SocketError(
            f"the socket path {path} is longer than {_PATH_LIMIT} bytes: use a shorter state directory"
        )
    _remove_stale(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        previous = os.umask(0o177)  # the file must never be open to others, not even for a moment
        try:
            listening.bind(str(path))
        finally:
            os.umask(previous)
        listening.listen(64)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise SocketError(f"cannot listen on the socket {path}: {error.strerror}") from error
    return listening


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketError(f"{path} exists and is not a socket: remove it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            # Refused means that no process listens: the file is left over from a killed server.
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise SocketError(f"cannot find out if another server uses the socket {path}: {error}") from error
    raise SocketError(f"another server already listens on the socket {path}: stop it first")


@contextlib.asynccontextmanager
async def serving(
    app: web.Application, listening: socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """Serve `app` on a listening socket until the context ends, for at most CONNECTIONS clients at a time."""
    running = runner(app, _log, _DRAIN_SECONDS)
    await running.setup()
    try:
        loop = asyncio.get_running_loop()
        # Instead of aiohttp's SockSite, because connections must pass _bounded.
        async with await loop.create_server(_bounded(running), sock=listening, ssl=tls):
            yield
    finally:
        await running.cleanup()


def _bounded(running: web.AppRunner) -> Callable[[], asyncio.Protocol]:
    """Return a protocol factory with a limit: a new connection beyond CONNECTIONS closes the oldest.

    Requests are answered within moments, so an old connection is idle. A client with many open connections
    cannot block others.
    """
    server = running.server
    if server is None:
        raise RuntimeError("the runner is not set up")

    def connection() -> asyncio.Protocol:
        there = server.connections
        for oldest in there[: max(0, len(there) + 1 - CONNECTIONS)]:
            if oldest.transport is not None:
                oldest.transport.abort()
        return server()

    return connection
