"""The addresses at which the server is asked, taken before anything runs: a port in use is found first."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from socket import socket

import structlog

from meshwright.admin.http.servers import SOCKET_NAME, unix_socket
from meshwright.controller.errors import StartupError
from meshwright.controller.settings.settings import Settings
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening import listening

_log = structlog.get_logger("controller.process.listening")


@dataclass(frozen=True, slots=True)
class Sockets:
    """Sockets that listen already."""

    http: socket
    debug: socket
    unix: socket
    webhook: socket | None = None


@contextlib.contextmanager
def bound(settings: Settings) -> Iterator[Sockets]:
    """Listen on every address but those of gRPC, which are only tried: grpcio says not why it fails.

    Raises StartupError, which names the setting and the address, and SocketError for the Unix socket.
    """
    path = settings.state / SOCKET_NAME
    with contextlib.ExitStack() as stack:
        if "ads_address" in settings.model_fields_set:  # else MeshConfig may name another port
            _listening("ads_address", settings.ads_address).close()
        for name in ("enrolment_address", "renewal_address"):
            if (address := getattr(settings, name)) is not None:
                _listening(name, address).close()
        http = stack.enter_context(_listening("http_address", settings.http_address))
        debug = stack.enter_context(_listening("debug_address", settings.debug_address))
        webhook = None
        if settings.webhook_address is not None:
            webhook = stack.enter_context(_listening("webhook_address", settings.webhook_address))
        unix = stack.enter_context(unix_socket(path))
        stack.callback(_removed, path)
        yield Sockets(http, debug, unix, webhook)


def _removed(path: Path) -> None:
    """Remove the socket; one that stays (on a read-only file system) is replaced by the next server."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("the socket's file stays", path=str(path), reason=error.strerror)


def _listening(name: str, address: HostPort) -> socket:
    try:
        return listening(address)
    except OSError as error:
        known = error.errno is not None and error.errno > 0
        reason = os.strerror(error.errno) if known and error.errno else "the host is not known here"
        raise StartupError(f"cannot listen on {address} ({name}): {reason}") from error
