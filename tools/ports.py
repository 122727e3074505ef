"""Ports for programs that are about to start, which nothing else takes in the meantime."""

import random
import socket
from typing import Final

_ASKED_FOR_BY_NUMBER: Final = range(20_000, 32_000)
"""Below those that Linux gives to whoever asks for any port, and to connections (ip_local_port_range).

A port of those can be given away between this answer and the program's start; with SO_REUSEPORT, which Envoy
and gRPC set, both programs then listen there, and each gets some of the other's connections.
"""
_TRIES: Final = 100
_RESERVATION: Final = "\0meshwright-port-{}"
"""The abstract name (unix(7)) that a process holds for each port that it was given.

Until a program listens at a port, nothing else says that the port is taken: tests run in several processes.
"""


def free_port(host: str, preferred: int = 0) -> int:
    """Return `preferred` if it can be listened at, otherwise (or for 0) one that is free for TCP and UDP.

    No two processes that run get the same port, and no process gets one twice, but for a preferred one.
    OSError if no port can be found.
    """
    if preferred and can_bind(host, preferred):
        return preferred
    for port in random.SystemRandom().sample(_ASKED_FOR_BY_NUMBER, _TRIES):
        if can_bind(host, port, socket.SOCK_DGRAM) and can_bind(host, port) and _reserved(port):
            return port
    raise OSError(f"no port of {host} is free: {_TRIES} of {_ASKED_FOR_BY_NUMBER} were tried")


def _reserved(port: int) -> bool:
    """Hold a port's name until this process ends; return False if a process holds it."""
    with socket.socket(socket.AF_UNIX) as name:
        try:
            name.bind(_RESERVATION.format(port))
        except OSError:
            return False
        name.detach()  # the descriptor stays open until this process ends
    return True


def can_bind(host: str, port: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> bool:
    """Say whether a server may listen there just now."""
    with socket.socket(type=kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
