"""The sockets accepted by this process on a port: listed and ended from outside of gRPC.

gRPC neither lists its connections nor ends one. But its sockets are descriptors of this process, and gRPC
treats a socket after its shutdown like a connection closed by the client. Without /proc, as on macOS, the
list of sockets is empty.
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
"""Descriptors for everything but clients: files, health checks, the admin pages, name resolution."""

_DESCRIPTORS: Final = "/proc/self/fd"
_ESTABLISHED: Final = 1
_INFO: Final = struct.Struct("B51xI72xQ")
"""Fields of Linux's struct tcp_info: tcpi_state, tcpi_last_data_recv (milliseconds), tcpi_bytes_received."""


def descriptors_for_clients() -> int:
    """Return the number of this process's descriptors available for clients.

    RESERVED descriptors are kept for the server, but at most a quarter of a low RLIMIT_NOFILE.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 2**31 - 1
    return soft - min(RESERVED, soft // 4)


def address(peer: str) -> Address:
    """Return IP address and port of a peer in gRPC's form.

    Examples of the form are `ipv4:10.0.0.1:443` and `ipv6:[::1]:443`.

    For any other form return the text itself with port 0.
    """
    host, _, port = unquote(peer.partition(":")[2]).rpartition(":")
    return (_plain(host.strip("[]")), int(port)) if port.isdecimal() else (peer, 0)


class AcceptedSockets:
    """The connections accepted on one port. Must be used by one thread at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._clients: dict[int, Address | None] = {}
        self._descriptors: dict[int, int] = {}
        self._seen: dict[int, Socket] = {}

    def look(self, due: Iterable[int]) -> tuple[Socket, ...]:
        """Return the new sockets since the last look, and the existing ones of `due`.

        Other known sockets are not examined. A socket without received bytes since the last examination is
        returned as the same object. Raises OSError without a free descriptor to list /proc.
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
        sockets = []
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
                heard = _received(descriptor)
            except OSError:  # closed meanwhile
                continue
            if heard is not None:
                same = before.get(number)
                if same is None or same.received != heard[0]:
                    same = Socket(number, client, *heard)
                self._seen[number], self._descriptors[number] = same, descriptor
                sockets.append(same)
        return tuple(sockets)

    def end(self, ended: Socket) -> bool:
        """Reset a connection seen at the last look; return whether the connection still existed."""
        try:
            descriptor = os.dup(self._descriptors[ended.number])
        except OSError:
            return False
        # Our duplicate stays valid if gRPC closes its own. It may be of another file already.
        status = os.fstat(descriptor)
        if not stat.S_ISSOCK(status.st_mode) or status.st_ino != ended.number:
            os.close(descriptor)
            return False
        with contextlib.suppress(OSError), socket.socket(fileno=descriptor) as same:  # its client was quicker
            # With a linger time of 0 the kernel sends a reset and frees its buffers at once.
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
        except OSError:  # the listening socket has no peer
            return None
        finally:
            same.detach()
        return _plain(host), port


def _received(descriptor: int) -> tuple[int, float] | None:
    """Return the received bytes, and the seconds since the last of them (without any: since the start).

    None for a connection closed by the client, which gRPC is about to close too.
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
    """Wrap a descriptor of gRPC in a socket.

    The caller must detach the descriptor, or gRPC's socket would be closed.

    Family and type are given explicitly, which saves Python a system call to detect them. AF_INET6 works for
    IPv4 sockets too.
    """
    return socket.socket(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, descriptor)


def _plain(host: str) -> str:
    """Return an IP address in canonical form. Example: `::ffff:10.0.0.1` becomes `10.0.0.1`."""
    if ":" not in host:
        return host
    try:
        parsed = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)
