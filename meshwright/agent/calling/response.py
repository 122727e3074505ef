"""Check that a connection went to the sidecar's listener, by the kernel's socket tables.

The other end of a redirected connection is a socket of this machine with the listener's port. A connection
that bypasses the sidecar has its other end elsewhere, or at another port. Any user may read the tables.
"""

import socket
from typing import Final

from meshwright.agent.sockets import end, listening, tables
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import plain

_MADE: Final = frozenset({"01", "03"})
"""States of an established connection, even before the listener has accepted the connection."""


def other_ends(table: str, ours: HostPort) -> tuple[int, ...]:
    """Return the ports of this machine's sockets with a connection to `ours`, from a kernel table."""
    rows = (line.split() for line in table.splitlines()[1:])
    return tuple(end(row[1]).port for row in rows if len(row) > 3 and row[3] in _MADE and end(row[2]) == ours)


def is_taken(ours: socket.socket, port: int) -> bool:
    """Return whether the other end of a connection is a socket of this machine at the given port."""
    host, number, *_ = ours.getsockname()
    where = HostPort(plain(host), number)
    return any(port in other_ends(text, where) for text in tables())


def is_listened_at(port: int) -> bool:
    """Return whether a socket in this network namespace listens on a TCP port."""
    return any(owner.port == port for owner in listening())
