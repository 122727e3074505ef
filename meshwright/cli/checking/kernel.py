"""Observations of this machine: the clock, listening sockets, and directories."""

import ctypes
import ipaddress
import os
import platform
import socket
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from meshwright.agent.sockets import Holder, holders, listening
from meshwright.cli.checking.judgements import fitness
from meshwright.cli.checking.judgements.check import Check
from meshwright.cli.checking.judgements.environment.clock import Clock
from meshwright.cli.checking.judgements.environment.machine import Listener
from meshwright.cli.checking.judgements.environment.ports import Port
from meshwright.cli.checking.judgements.fitness import Directory
from meshwright.mesh.host_port import HostPort

_TIMEX_BYTES: Final = 512
"""More than the size of `struct timex`; with all bytes zero, adjtimex only reads."""
_TIME_ERROR: Final = 5


def clock() -> Clock:
    """Read the clock and its synchronisation: adjtimex(2) returns TIME_ERROR for an unsynchronised clock."""
    with suppress(AttributeError, OSError):
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
        return Clock(datetime.now(UTC), None if state < 0 else state != _TIME_ERROR)
    return Clock(datetime.now(UTC))


def python() -> Check:
    """Judge the Python and the operating system of this process."""
    return fitness.python(sys.version_info[:3], platform.system())


def port(purpose: str, setting: str, at: HostPort) -> Port:
    """Return a `Port` for an address of a Meshwright program, with the present listeners."""
    host = _address(at.host)
    owners = [owner for owner in listening() if owner.port == at.port and owner.takes(host)]
    who: set[Holder] = {holder for owner in owners for holder in holders(owner.number)}
    return Port(purpose, setting, at, bool(owners), tuple(sorted(who)))


def listeners(*, with_programs: bool = True) -> tuple[Listener, ...]:
    """Return all listeners of this machine; `with_programs` adds their processes."""
    return tuple(
        Listener(owner, holders(owner.number) if with_programs else ()) for owner in sorted(listening())
    )


def directory(path: Path) -> Directory:
    """Return whether a directory can be written, or could be created, without creating it."""
    if path.exists():
        if not path.is_dir():
            return Directory(path, there=True, error=f"{path} is not a directory")
        able = os.access(path, os.R_OK | os.W_OK | os.X_OK)
        error = "" if able else f"{path} cannot be written by this user (or is read-only)"
        return Directory(path, there=True, error=error)
    above = next(parent for parent in path.absolute().parents if parent.exists())
    able = above.is_dir() and os.access(above, os.W_OK | os.X_OK)
    error = "" if able else f"{path} cannot be made: this user cannot write to {above} (or it is read-only)"
    return Directory(path, there=False, error=error)


def _address(host: str) -> str:
    """Return an address of a host name, or the wildcard address, so that any listener at the port counts."""
    with suppress(ValueError):
        return str(ipaddress.ip_address(host))
    with suppress(OSError):
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    return "0.0.0.0"  # noqa: S104 - compared, not listened at
