"""Interface of the two kinds of interception, and the choice between them."""

import os
import shutil
import socket
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final, Protocol

from demo.supervisor import DemoError
from demo.topology import Addresses, Mode, Place
from tools.ports import can_bind

PROXY_UID: Final = 1500
STATUS_PORT: Final = 15020
"""Defaults of Meshwright: the user id of the proxy, and the port of the agent's own server."""

_NEEDED: Final = ("ip", "iptables-restore", "nsenter", "setpriv", "unshare")


class Interception(Protocol):
    """Network for programs and sidecars in one mode of interception."""

    control_plane: str
    """IP address at which sidecars reach the control plane."""

    @property
    def mode(self) -> Mode:
        """Return the mode of interception."""

    @property
    def addresses(self) -> Addresses:
        """Return the addresses of all workloads in this mode of interception."""

    async def prepare(self) -> None:
        """Create the network of the bookstore; raise DemoError if this fails."""

    async def name_services(self, place: Place, hosts: str) -> None:
        """Make service names resolve for a workload; `hosts` has the lines of a hosts file."""

    def status(self, place: Place) -> str:
        """Return HOST:PORT of the agent's own server, as seen by the workload."""

    def sidecar(self, place: Place, argv: Sequence[str]) -> list[str]:
        """Return the command that runs a sidecar in the workload's network."""

    def program(self, place: Place, argv: Sequence[str]) -> list[str]:
        """Return the command that runs a program in the workload's network."""

    def own(self, place: Place, directory: Path, *, sidecar: bool) -> None:
        """Make the sidecar or the program the owner of a directory and of the files in it."""

    def release(self) -> None:
        """Release reserved names of the network; to be called after all processes have ended."""


def missing_for_transparent() -> str:
    """Return the reason why transparent interception is not possible here; empty if it is possible."""
    if os.geteuid() != 0:
        return "it needs root"
    lacking = [name for name in _NEEDED if shutil.which(name) is None]
    return f"it needs {', '.join(lacking)}" if lacking else ""


def choose(wanted: str) -> tuple[Mode, str]:
    """Choose the mode for `auto`, `transparent` or `explicit`; return the mode and the reason.

    Raises DemoError if `transparent` is requested and not possible.
    """
    lacking = missing_for_transparent()
    match wanted:
        case "explicit":
            return Mode.EXPLICIT, "as requested"
        case "transparent":
            if lacking:
                raise DemoError(f"transparent interception is not possible here: {lacking}")
            return Mode.TRANSPARENT, "as requested"
        case _:
            if lacking:
                return Mode.EXPLICIT, f"transparent interception is not possible here: {lacking}"
            return Mode.TRANSPARENT, "root can make network namespaces and iptables rules"


class Reservations:
    """Machine-wide names, each held by at most one demo at a time.

    Each name is an abstract Unix socket. Such a socket has no file and is released when the process ends.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def take(self, name: str) -> bool:
        """Reserve a machine-wide name; return False if another process holds the name."""
        holder = socket.socket(socket.AF_UNIX)
        try:
            # A name of an abstract Unix socket begins with a zero byte; only one process can bind the name
            # (unix(7)).
            holder.bind(f"\0meshwright-demo-{name}")
        except OSError:
            holder.close()
            return False
        self._sockets.append(holder)
        return True

    def release(self) -> None:
        """Release all reserved names."""
        while self._sockets:
            self._sockets.pop().close()


def free_network(taken: Iterable[IPv4Network], take: Callable[[str], bool]) -> str:
    """Return the first three octets of a free /24 in 10.222.0.0/15, for example `10.222.0`.

    `taken` are the destinations of all routes; a default route is ignored. `take` reserves a network, and
    returns False if another demo has reserved the network. Raises DemoError if every network is in use.
    """
    routes = [network for network in taken if network.prefixlen > 0]
    for network in IPv4Network("10.222.0.0/15").subnets(new_prefix=24):
        octets = str(network.network_address).rpartition(".")[0]
        if not any(network.overlaps(route) for route in routes) and take(octets):
            return octets
    raise DemoError(
        "no network is free in 10.222.0.0/15: each /24 overlaps a route or is in use by another demo"
    )


def free_loopback(take: Callable[[str], bool]) -> str:
    """Return the first two octets of unused loopback addresses, for example `127.20`.

    `take` reserves them, and returns False if another demo has reserved them. Raises DemoError if none is
    free.
    """
    for octet in range(20, 60):
        base = f"127.{octet}"
        if take(base) and all(
            can_bind(f"{base}.{index}.{last}", 14001) for index in range(1, 7) for last in (1, 2, 10)
        ):
            return base
    raise DemoError("no loopback addresses are free from 127.20 to 127.59: is another demo running?")
