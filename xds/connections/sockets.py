"""The sockets that this process has accepted at a port: seen from outside, and ended.

gRPC neither lists its connections nor ends one. But its sockets are descriptors of this process, and one
that is shut down is to gRPC a connection that its client has closed. Where there is no /proc none are seen.
"""

import contextlib
import ipaddress
import os
import resource
import socket
import stat
import struct
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

from xds.connections.table import Address, Socket

RESERVED: Final = 256
"""Descriptors for all that is no client's connection here: files, health, the pages, names to resolve."""

_DESCRIPTORS: Final = "/proc/self/fd"
_ESTABLISHED: Final = 1
_INFO: Final = struct.Struct("B51xI72xQ")
"""Of Linux's struct tcp_info: tcpi_state, tcpi_last_data_recv (milliseconds), tcpi_bytes_received."""


def descriptors_for_clients() -> int:
    """Return how many of this process' descriptors clients may have; a fourth at least is kept of few."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 2**31 - 1
    return soft - min(RESERVED, soft // 4)


def address(peer: str) -> Address:
    """Return the address in `ipv4:HOST:PORT` or `ipv6:[HOST]:PORT`, as gRPC says it; others as they are."""
    host, _, port = unquote(peer.partition(":")[2]).rpartition(":")
    return (_plain(host.strip("[]")), int(port)) if port.isdecimal() else (peer, 0)


class AcceptedSockets:
    """The connections accepted at one port; used from one thread at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._clients: dict[int, Address | None] = {}
        self._descriptors: dict[int, int] = {}
        self._seen: dict[int, Socket] = {}

    def look(self, due: Iterable[int]) -> tuple[Socket, ...]:
        """Return those that came since the last look, and those that are `due`, by number, if still there.

        Nothing is asked of the others: whoever looks knows that they are there. One of which nothing came
        since it was looked at is the very object that it was then. Raises OSError if no descriptor is left to
        look with.
        """
        try:
            names = os.listdir(_DESCRIPTORS)  # noqa: PTH208 - thousands, each second: no objects for names
        except FileNotFoundError:
            return ()
        before, clients, self._clients = {}, self._clients, {}
        for number in due:
            if number in self._seen:
                before[number] = last = self._seen.pop(number)
                clients[number] = last.address
                del self._descriptors[number]
        found = []
        for descriptor in sorted(set(map(int, names)).difference(self._descriptors.values())):
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISSOCK(status.st_mode):
                    continue
                number = status.st_ino
                client = clients[number] if number in clients else self._client(descriptor)
                self._clients[number] = client
                if client is None:
                    continue
                heard = _heard(descriptor)
            except OSError:  # closed meanwhile
                continue
            if heard is not None:
                same = before.get(number)
                if same is None or same.received != heard[0]:
                    same = Socket(number, client, *heard)
                self._seen[number], self._descriptors[number] = same, descriptor
                found.append(same)
        return tuple(found)

    def end(self, ended: Socket) -> bool:
        """End a connection seen in the last look, at once; say whether it was still there."""
        try:
            descriptor = os.dup(self._descriptors[ended.number])
        except OSError:
            return False
        with socket.socket(fileno=descriptor) as same:  # ours: whatever gRPC closes, this stays what it is
            if os.fstat(descriptor).st_ino != ended.number:
                return False
            with contextlib.suppress(OSError):  # its client was quicker
                same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                same.shutdown(socket.SHUT_RDWR)
        return True

    def _client(self, descriptor: int) -> Address | None:
        same = _borrowed(descriptor)
        try:
            here = same.getsockname()
            if not isinstance(here, tuple) or here[1] != self._port:
                return None
            host, port = same.getpeername()[:2]
        except OSError:  # the one that listens
            return None
        finally:
            same.detach()
        return _plain(host), port


def _heard(descriptor: int) -> tuple[int, float] | None:
    """Return how many bytes were received, and the seconds since the last ones or, if none, the beginning.

    None is for a connection that its client has closed: gRPC is about to let go of it.
    """
    same = _borrowed(descriptor)
    try:
        info = same.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
    finally:
        same.detach()
    if len(info) < _INFO.size:
        return 0, 0.0
    state, milliseconds, received = _INFO.unpack(info)
    return (received, milliseconds / 1000) if state == _ESTABLISHED else None


def _borrowed(descriptor: int) -> socket.socket:
    """Return somebody else's descriptor as a socket, to be read and then detached, lest it be closed.

    Said to be of IPv6 and TCP lest it be asked: addresses of either family fit, and tell which they are.
    """
    return socket.socket(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, descriptor)


def _plain(host: str) -> str:
    """Return an IP address in one spelling, an IPv4 one as such."""
    if ":" not in host:
        return host
    try:
        parsed = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)
