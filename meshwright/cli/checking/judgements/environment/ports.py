"""Judgements of the ports at which our programs listen, or are to listen."""

from collections.abc import Sequence
from dataclasses import dataclass

from meshwright.agent.sockets import Holder
from meshwright.cli.checking.judgements.check import Check
from meshwright.mesh.host_port import HostPort


@dataclass(frozen=True, slots=True)
class Port:
    """An address of ours with its purpose and setting, and the present listeners.

    `taken`: a program listens there. `holders` are the listening processes, empty if they belong to another
    user.
    """

    purpose: str
    setting: str
    address: HostPort
    taken: bool
    holders: tuple[Holder, ...] = ()

    @property
    def name(self) -> str:
        """Return the name of the check."""
        return f"port {self.purpose}"

    @property
    def processes(self) -> str:
        """Return the processes listening at the port, as far as visible to this user, as text."""
        return ", ".join(map(str, self.holders)) or "a program of another user"


def free(port: Port) -> Check:
    """Judge whether a port is free, before the start of the Meshwright program for the port."""
    if not port.address.port:
        return Check.ok(port.name, "the system chooses a free port")
    if port.taken:
        do = f"stop the other program, or choose another address with {port.setting}"
        return Check.failed(port.name, f"{port.address} is in use by {port.processes}", do)
    return Check.ok(port.name, f"{port.address} is free")


def ours(port: Port, pids: Sequence[int]) -> Check:
    """Judge a port at which one of the processes `pids` must listen."""
    if not port.address.port:
        return Check.ok(
            port.name, "the system has chosen a port; see the server's log for the number (`serving`)"
        )
    if not port.taken:
        do = f"restart the server, which should listen there because of {port.setting}"
        return Check.failed(port.name, f"no process listens at {port.address}", do)
    if not port.holders:
        do = "repeat the command as the server's user, or as root"
        return Check.warning(
            port.name, f"the process that listens at {port.address} is not visible to this user", do
        )
    if not any(holder.pid in pids for holder in port.holders):
        do = f"stop the other program and restart the server, or choose another address with {port.setting}"
        return Check.failed(port.name, f"another program listens at {port.address}: {port.processes}", do)
    return Check.ok(port.name, f"{port.processes} serves at {port.address}")
