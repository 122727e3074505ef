"""Free ports for programs about to start, reserved against other processes of this project."""

import random
import socket
from typing import Final

_ASKED_FOR_BY_NUMBER: Final = range(20_000, 32_000)
"""Range below the ephemeral ports of Linux (ip_local_port_range).

An ephemeral port could be given to a connection between this answer and the start of the program. Envoy and
gRPC set SO_REUSEPORT, so two programs could then listen on the same port and share the connections.
"""
_TRIES: Final = 100
_RESERVATION: Final = "\0meshwright-port-{}"
"""Name of the abstract Unix socket (unix(7)) that reserves a port for a process.

Tests run in several processes, and a port looks free until the program listens.
"""


def free_port(host: str, preferred: int = 0) -> int:
    """Return `preferred` if a server can listen on it, else (or for 0) a port free for both TCP and UDP.

    No two running processes get the same port, and no process gets a port twice, except a preferred one.
    Raises OSError if no port is free.
    """
    if preferred and can_bind(host, preferred):
        return preferred
    for port in random.SystemRandom().sample(_ASKED_FOR_BY_NUMBER, _TRIES):
        if can_bind(host, port, socket.SOCK_DGRAM) and can_bind(host, port) and _reserved(port):
            return port
    raise OSError(f"no port of {host} is free after {_TRIES} attempts")


def _reserved(port: int) -> bool:
    """Reserve a port against other processes of this project until this one ends; return False if taken."""
    with socket.socket(socket.AF_UNIX) as name:
        try:
            name.bind(_RESERVATION.format(port))
        except OSError:
            return False
        name.detach()  # the socket must stay open until this process ends
    return True


def can_bind(host: str, port: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> bool:
    """Return whether a server can listen on the port now."""
    with socket.socket(type=kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
