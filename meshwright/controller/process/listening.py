"""Sockets of the server, bound before anything else runs, so a port in use is found first."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from socket import socket

import structlog

from meshwright.admin.http.servers import unix_socket
from meshwright.controller.errors import StartupError
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import listening

_log = structlog.get_logger("controller.process.listening")


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The addresses to listen on, and the path of the Unix socket.

    `grpc` are addresses, bound later by gRPC servers, by the names of their settings, for example
    `ads_address`.
    """

    grpc: Mapping[str, HostPort]
    http: HostPort
    debug: HostPort
    unix: Path
    webhook: HostPort | None = None


@dataclass(frozen=True, slots=True)
class Sockets:
    """Listening sockets of the server, except the ones of gRPC."""

    http: socket
    debug: socket
    unix: socket
    webhook: socket | None = None


@contextlib.contextmanager
def bound(addresses: Addresses) -> Iterator[Sockets]:
    """Listen on every address; gRPC's addresses are only tried, because grpcio does not report a cause.

    Raises StartupError with the setting and the address, and SocketError for the Unix socket.
    """
    with contextlib.ExitStack() as stack:
        for name, address in addresses.grpc.items():
            # Bound and released: gRPC binds the address itself, and would not report the cause of a failure.
            listen(name, address).close()
        http = stack.enter_context(listen("http_address", addresses.http))
        debug = stack.enter_context(listen("debug_address", addresses.debug))
        webhook = None
        if addresses.webhook is not None:
            webhook = stack.enter_context(listen("webhook_address", addresses.webhook))
        unix = stack.enter_context(unix_socket(addresses.unix))
        stack.callback(_removed, addresses.unix)
        yield Sockets(http, debug, unix, webhook)


def _removed(path: Path) -> None:
    """Remove the socket's file. If that fails (read-only file system), the next server replaces the file."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("socket file not removed", path=str(path), reason=error.strerror)


def listen(name: str, address: HostPort) -> socket:
    """Listen on the address of a setting. Raises StartupError with the setting and the address."""
    try:
        return listening(address)
    except OSError as error:
        known = error.errno is not None and error.errno > 0
        reason = os.strerror(error.errno) if known and error.errno else "the host is not known here"
        raise StartupError(f"cannot listen on {address} ({name}): {reason}") from error
