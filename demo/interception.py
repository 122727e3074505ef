"""The contract between the demo and its two ways of interception, and how one is chosen."""

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
"""What the program does where it is told nothing: the proxy's user, the agent's server."""

_NEEDED: Final = ("ip", "iptables-restore", "nsenter", "setpriv", "unshare")


class Interception(Protocol):
    """Places for programs and sidecars, in one mode."""

    control_plane: str
    """The address at which the control plane takes its sidecars' calls."""

    @property
    def mode(self) -> Mode:
        """Return which of the two ways this is."""

    @property
    def addresses(self) -> Addresses:
        """Return where things are."""

    async def prepare(self) -> None:
        """Make the places; raise DemoError if they cannot be made."""

    async def name_services(self, place: Place, hosts: str) -> None:
        """Make service names resolve in a place, by the lines of a hosts file."""

    def status(self, place: Place) -> str:
        """Return HOST:PORT of the agent's own server, as seen in its place."""

    def sidecar(self, place: Place, argv: Sequence[str]) -> list[str]:
        """Return the command that runs a sidecar in a place."""

    def program(self, place: Place, argv: Sequence[str]) -> list[str]:
        """Return the command that runs a program in a place."""

    def own(self, place: Place, directory: Path, *, sidecar: bool) -> None:
        """Let the sidecar (or the program) read and write a directory that was made for it."""

    def release(self) -> None:
        """Give back what was reserved; to be called when everything has ended."""


def missing_for_transparent() -> str:
    """Say what transparent interception lacks here; empty if nothing."""
    if os.geteuid() != 0:
        return "it needs root"
    lacking = [name for name in _NEEDED if shutil.which(name) is None]
    return f"it needs {', '.join(lacking)}" if lacking else ""


def choose(wanted: str) -> tuple[Mode, str]:
    """Choose the mode for `auto`, `transparent` or `explicit`, and say why; DemoError if it cannot be had."""
    lacking = missing_for_transparent()
    match wanted:
        case "explicit":
            return Mode.EXPLICIT, "as asked"
        case "transparent":
            if lacking:
                raise DemoError(f"transparent interception cannot be had here: {lacking}")
            return Mode.TRANSPARENT, "as asked"
        case _:
            if lacking:
                return Mode.EXPLICIT, f"transparent interception cannot be had here: {lacking}"
            return Mode.TRANSPARENT, "root, with network namespaces and iptables"


class Reservations:
    """Names that one demo of this machine holds at a time.

    Each is an abstract Unix socket: it has no file, and goes with the process if it is not released.
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self, name: str) -> bool:
        """Take a name; return whether nobody else holds it."""
        holder = socket.socket(socket.AF_UNIX)
        try:
            holder.bind(f"\0meshwright-demo-{name}")
        except OSError:
            holder.close()
            return False
        self._held.append(holder)
        return True

    def release(self) -> None:
        """Give every name back."""
        while self._held:
            self._held.pop().close()


def free_network(taken: Iterable[IPv4Network], take: Callable[[str], bool]) -> str:
    """Return the first three octets of a /24 in 10.222.0.0/15 that overlaps no route; DemoError if none.

    `taken` are the destinations of the routes there are; a default route does not count. `take` reserves
    a network, and refuses one that another demo is about to use.
    """
    routes = [network for network in taken if network.prefixlen > 0]
    for network in IPv4Network("10.222.0.0/15").subnets(new_prefix=24):
        octets = str(network.network_address).rpartition(".")[0]
        if not any(network.overlaps(route) for route in routes) and take(octets):
            return octets
    raise DemoError("no network is free in 10.222.0.0/15: every one overlaps a route of this machine")


def free_loopback(take: Callable[[str], bool]) -> str:
    """Return two octets under 127 whose addresses nobody listens at; DemoError if there are none.

    `take` reserves them, and refuses those that another demo is about to use.
    """
    for octet in range(20, 60):
        base = f"127.{octet}"
        if take(base) and all(
            can_bind(f"{base}.{index}.{last}", 14001) for index in range(1, 7) for last in (1, 2, 10)
        ):
            return base
    raise DemoError("no loopback addresses are free from 127.20 to 127.59: is another demo running?")
