"""aiohttp servers: over TCP, and over a Unix socket that is the owner's alone."""

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
"""More than the probes, scrapers and people that ask one server at a time."""

_PATH_LIMIT: Final = 107  # sun_path of Linux, less its end
_DRAIN_SECONDS: Final = 1.0


_log = structlog.get_logger("admin.http")


class SocketError(Exception):
    """The Unix socket cannot be made; the message is one sentence that says why."""


def unix_socket(path: Path) -> socket.socket:
    """Listen on a Unix socket (0600) at `path`; raise SocketError.

    A file left by a server that is gone is replaced; one at which a server answers is not.
    """
    if len(os.fsencode(path)) > _PATH_LIMIT:
        raise SocketError(f"the socket's path {path} is longer than {_PATH_LIMIT} bytes: use a shorter state")
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
        raise SocketError(f"{path} is there and is no socket: remove it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise SocketError(f"cannot tell whether a server uses {path}: {error}") from error
    raise SocketError(f"another server answers at {path}")


@contextlib.asynccontextmanager
async def serving(
    app: web.Application, listening: socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """Serve `app` on a listening socket for as long as the context lasts, to so many clients at a time."""
    running = runner(app, _log, _DRAIN_SECONDS)
    await running.setup()
    try:
        loop = asyncio.get_running_loop()
        async with await loop.create_server(_bounded(running), sock=listening, ssl=tls):
            yield
    finally:
        await running.cleanup()


def _bounded(running: web.AppRunner) -> Callable[[], asyncio.Protocol]:
    """Return what makes the server's connections, and ends the oldest of too many for a new one.

    A client that asks is answered in a moment: what is old asks nothing, and whoever holds connections, with
    a request or without, keeps nobody out.
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
