"""Whether a connection came to the sidecar's listener: who has its other end, by the kernel's tables.

Where it is led to the listener by iptables, the other end is a socket of this machine, with the listener's
port. What goes past the sidecar has its other end elsewhere, or at another port. Anybody may read the tables.
"""

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

from agent.interception.owners import owners
from mesh.host_port import HostPort

# Of this very thread: it may stand in another namespace than the process.
_TABLES: Final = (Path("/proc/thread-self/net/tcp"), Path("/proc/thread-self/net/tcp6"))
_MADE: Final = frozenset({"01", "03"})
"""States of a connection that is made, be it that nobody has accepted it yet."""
_WORD: Final = 8


def other_ends(table: str, ours: HostPort) -> tuple[int, ...]:
    """Return the ports of this machine's sockets that are connected to `ours`, by a table of the kernel."""
    rows = (line.split() for line in table.splitlines()[1:])
    return tuple(
        _read(row[1]).port for row in rows if len(row) > 3 and row[3] in _MADE and _read(row[2]) == ours
    )


def is_taken(ours: socket.socket, port: int) -> bool:
    """Say whether the other end of a connection is a socket of this machine at that port."""
    host, number, *_ = ours.getsockname()
    where = HostPort(_plain(ip_address(host)), number)
    return any(port in other_ends(text, where) for text in _texts())


def is_listened_at(port: int) -> bool:
    """Say whether anybody of this machine listens at a port."""
    return any(each.port == port for text in _texts() for each in owners(text))


def _texts() -> Iterator[str]:
    for path in _TABLES:
        try:
            yield path.read_text("ascii")
        except OSError:  # there is no such family, or no /proc
            continue


def _read(text: str) -> HostPort:
    """Read an address as the tables have it: words of 32 bits, each in this machine's order of bytes."""
    digits, _, port = text.partition(":")
    words = (bytes.fromhex(digits[at : at + _WORD])[::-1] for at in range(0, len(digits), _WORD))
    raw = b"".join(words)
    return HostPort(_plain(IPv4Address(raw) if len(raw) == 4 else IPv6Address(raw)), int(port, 16))


def _plain(address: IPv4Address | IPv6Address) -> str:
    """Return an address as text; an IPv4 one of a socket for both families as what it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
