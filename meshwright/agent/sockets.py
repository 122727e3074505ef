"""Who listens on this machine, as the kernel shows it: address, port, user, and who holds the socket."""

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

# Of this very thread: it may stand in another namespace than the process.
_TABLES: Final = (Path("/proc/thread-self/net/tcp"), Path("/proc/thread-self/net/tcp6"))
_LISTENS: Final = "0A"
_ANY: Final = IpAddress("0.0.0.0")  # noqa: S104 - read, not listened at


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """Who listens at a port: the user of the socket, the socket's number, and the address it is bound to."""

    port: int
    uid: int
    number: int
    address: IpAddress = _ANY

    def takes(self, host: str) -> bool:
        """Say whether what is sent to this address comes here; a socket of all addresses takes every one.

        One of IPv6's takes IPv4's, too, unless it was told not to, which the kernel does not show.
        """
        own, asked = ipaddress.ip_address(self.address), ipaddress.ip_address(host)
        return own == asked or own.is_unspecified or asked.is_unspecified


@dataclass(frozen=True, slots=True, order=True)
class Holder:
    """A process that has a socket."""

    pid: int
    program: str

    def __str__(self) -> str:
        return f"{self.program} (pid {self.pid})"


def owners(table: str) -> tuple[Owner, ...]:
    """Read who listens from a table as the kernel shows it (`/proc/net/tcp`, `/proc/net/tcp6`)."""
    rows = (line.split() for line in table.splitlines()[1:])
    return tuple(_owner(row) for row in rows if len(row) > 9 and row[3] == _LISTENS)


def listening() -> tuple[Owner, ...]:
    """Return who listens in this thread's network namespace."""
    return tuple(each for table in tables() for each in owners(table))


def holders(number: int) -> tuple[Holder, ...]:
    """Return the processes that have a socket, as far as they can be seen from here, sorted."""
    link = f"socket:[{number}]"
    return tuple(_holders(link))


def end(text: str) -> HostPort:
    """Read an address as the tables have it: words of 32 bits, each in the order of this machine's bytes."""
    digits, _, port = text.rpartition(":")
    words = (int(digits[start : start + 8], 16) for start in range(0, len(digits), 8))
    packed = b"".join(struct.pack("=I", word) for word in words)
    return HostPort(plain(str(ipaddress.ip_address(packed))), int(port, 16))


def tables() -> Iterator[str]:
    """Yield the kernel's tables of TCP's sockets, of each family that there is."""
    for path in _TABLES:
        with contextlib.suppress(OSError):  # there is no such family, or no /proc
            yield path.read_text("ascii")


def _owner(row: list[str]) -> Owner:
    at = end(row[1])
    return Owner(at.port, int(row[7]), int(row[9]), IpAddress(at.host))


def _holders(link: str) -> Iterator[Holder]:
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda each: int(each.name)):
        with contextlib.suppress(OSError):  # it ended meanwhile, or is not ours to look at
            if any(os.readlink(each) == link for each in (folder / "fd").iterdir()):  # noqa: PTH115
                yield Holder(int(folder.name), _name((folder / "comm").read_bytes()))


def _name(raw: bytes) -> str:
    """Return a process' own name as a terminal may be shown it: it may be any bytes."""
    text = raw.decode(errors="replace").rstrip("\n")
    return "".join(each if each.isprintable() else "\ufffd" for each in text)
