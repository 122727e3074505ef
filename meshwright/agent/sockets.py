"""Listening sockets of this machine, from the kernel's tables: address, port, user, and processes."""

import contextlib
import ipaddress
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import plain
from meshwright.mesh.names import IpAddress

# Of this thread, because it may be in another network namespace than the process.
_TABLES: Final = (Path("/proc/thread-self/net/tcp"), Path("/proc/thread-self/net/tcp6"))
_LISTENS: Final = "0A"
_ANY: Final = IpAddress("0.0.0.0")  # noqa: S104 - read, not listened at


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """A listening socket: port, user, inode number, and address."""

    port: int
    uid: int
    number: int
    address: IpAddress = _ANY

    def takes(self, host: str) -> bool:
        """Return whether connections to this address reach the socket; a wildcard address takes every one.

        An IPv6 wildcard also takes IPv4 unless the socket disables IPv4, which the kernel's table does not
        show.
        """
        own, asked = ipaddress.ip_address(self.address), ipaddress.ip_address(host)
        return own == asked or own.is_unspecified or asked.is_unspecified


@dataclass(frozen=True, slots=True, order=True)
class Holder:
    """A process with an open socket."""

    pid: int
    program: str

    def __str__(self) -> str:
        return f"{self.program} (pid {self.pid})"


def owners(table: str) -> tuple[Owner, ...]:
    """Parse the listening sockets of a kernel table (`/proc/net/tcp` or `/proc/net/tcp6`)."""
    rows = (line.split() for line in table.splitlines()[1:])
    return tuple(_owner(row) for row in rows if len(row) > 9 and row[3] == _LISTENS)


def listening() -> tuple[Owner, ...]:
    """Return the listening sockets in this thread's network namespace."""
    return tuple(owner for table in tables() for owner in owners(table))


def holders(number: int) -> tuple[Holder, ...]:
    """Return the processes with this socket (inode number) open, sorted, as far as they are visible."""
    link = f"socket:[{number}]"
    return tuple(_holders(link))


def end(text: str) -> HostPort:
    """Parse an address of the tables: 32-bit words, each in the byte order of this machine.

    For example, `0100007F:1F90` is port 8080 of 127.0.0.1 on a little-endian machine.
    """
    digits, _, port = text.rpartition(":")
    words = (int(digits[start : start + 8], 16) for start in range(0, len(digits), 8))
    packed = b"".join(struct.pack("=I", word) for word in words)
    return HostPort(plain(str(ipaddress.ip_address(packed))), int(port, 16))


def tables() -> Iterator[str]:
    """Yield the kernel's tables of TCP sockets, one for each available address family."""
    for path in _TABLES:
        with contextlib.suppress(OSError):  # the address family or /proc is not available
            yield path.read_text("ascii")


def _owner(row: list[str]) -> Owner:
    at = end(row[1])
    return Owner(at.port, int(row[7]), int(row[9]), IpAddress(at.host))


def _holders(link: str) -> Iterator[Holder]:
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        with contextlib.suppress(OSError):  # the process ended meanwhile, or may not be examined
            if any(os.readlink(path) == link for path in (folder / "fd").iterdir()):  # noqa: PTH115
                yield Holder(int(folder.name), _name((folder / "comm").read_bytes()))


def _name(raw: bytes) -> str:
    """Return a process's name in printable form, because the name may contain any bytes."""
    text = raw.decode(errors="replace").rstrip("\n")
    return "".join(item if item.isprintable() else "\ufffd" for item in text)
