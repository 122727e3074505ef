"""Machines for tests: unnamed network namespaces, their links, and sockets made in them.

A socket belongs to the namespace and the user of the thread that makes it, independent of its later use. So
one process can act on several machines and as several users, which satisfies netfilter's owner match.
"""

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.tools.deadline import slowness
from tools.netns import within

_Result = TypeVar("_Result")

WORKLOAD = {socket.AF_INET: "10.250.0.1", socket.AF_INET6: "fd00:250::1"}
CLIENT = {socket.AF_INET: "10.250.0.2", socket.AF_INET6: "fd00:250::2"}
LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
PROXY_UID, APPLICATION_UID = 1500, 1501
SECONDS = 60.0
"""After so long a command hangs, on a computer that is not busy."""
_IP_TRANSPARENT, _IPV6_TRANSPARENT = 19, 75
_ORIGINAL_DESTINATION = 80


@dataclass
class Machine:
    """A network namespace, identified by a process in it."""

    pid: int

    @property
    def enter(self) -> list[str]:
        """Return the command prefix that runs a command in this namespace."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--"]

    def run(self, *argv: str, given: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command on this machine; kill it after 60 s, or later while the computer is busy."""
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [*self.enter, *argv], stdin=pipe, stdout=pipe, stderr=pipe, text=True
        ) as process:
            try:
                out, err = _communicate(process, given)
            except BaseException:
                process.kill()
                raise
        done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
        if check:
            done.check_returncode()
        return done

    def do(self, work: Callable[[], _Result], uid: int = 0) -> _Result:
        """Call a function in a separate thread in this namespace, with sockets owned by that user."""
        return within(Path(f"/proc/{self.pid}/ns/net"), work, uid)

    def socket(self, family: socket.AddressFamily, uid: int) -> socket.socket:
        """Return a TCP socket of this machine and user."""
        made = self.do(lambda: socket.socket(family, socket.SOCK_STREAM), uid)
        made.settimeout(15)
        return made


@dataclass(frozen=True)
class Answer:
    """A server's answer: its name, the original destination, and the client's address."""

    who: str
    destination: tuple[str, int]
    client: str


@dataclass
class Servers:
    """Listeners of one machine; each answers a connection with one line and closes it."""

    machine: Machine
    _listening: list[socket.socket] = field(default_factory=list)

    def listen(
        self, who: str, family: socket.AddressFamily, port: int, uid: int, *, transparent: bool = False
    ) -> None:
        """Listen on all addresses of a family."""
        server = self.machine.socket(family, uid)
        server.settimeout(None)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if transparent:
            v4 = family is socket.AF_INET
            level, option = (
                (socket.SOL_IP, _IP_TRANSPARENT) if v4 else (socket.IPPROTO_IPV6, _IPV6_TRANSPARENT)
            )
            server.setsockopt(level, option, 1)
        server.bind(("", port))
        server.listen(64)
        self._listening.append(server)
        threading.Thread(target=_serve, args=(server, who, transparent), daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        for server in self._listening:
            server.shutdown(socket.SHUT_RDWR)
            server.close()


def _communicate(process: "subprocess.Popen[str]", given: str) -> tuple[str, str]:
    """Return the output of a command; raise subprocess.TimeoutExpired if it hangs."""
    try:
        return process.communicate(given, SECONDS)
    except subprocess.TimeoutExpired:
        return process.communicate(timeout=SECONDS * (slowness() - 1))


def _serve(server: socket.socket, who: str, transparent: bool) -> None:
    while True:
        try:
            connection, client = server.accept()
        except OSError:
            return
        with connection:
            where = connection.getsockname()[:2] if transparent else _original_destination(connection)
            connection.sendall(f"{who} {where[0]} {where[1]} {client[0]}\n".encode())


def _original_destination(connection: socket.socket) -> tuple[str, int]:
    """Return the original destination of a redirected connection, from the kernel."""
    if connection.family is socket.AF_INET:
        level, size = socket.SOL_IP, 16
    else:
        level, size = socket.IPPROTO_IPV6, 28
    try:
        raw = connection.getsockopt(level, _ORIGINAL_DESTINATION, size)
    except OSError:  # it was never redirected
        name: tuple[Any, ...] = connection.getsockname()
        return str(name[0]), int(name[1])
    address = raw[4:8] if connection.family is socket.AF_INET else raw[8:24]
    return socket.inet_ntop(connection.family, address), int.from_bytes(raw[2:4], "big")


def call(machine: Machine, family: socket.AddressFamily, uid: int, host: str, port: int) -> Answer | None:
    """Connect as a user of a machine and return the answer, or None if the connection fails."""
    try:
        return answer(machine, family, uid, host, port)
    except OSError:
        return None


def answer(machine: Machine, family: socket.AddressFamily, uid: int, host: str, port: int) -> Answer:
    """Connect as a user of a machine and return the answer. OSError has the failed step and its time."""
    with machine.socket(family, uid) as client:
        began, doing = time.monotonic(), "connecting"
        try:
            client.connect((host, port))
            doing = "reading"
            line = client.makefile().readline()
        except OSError as error:
            raise OSError(f"{doing}: {error!r} after {time.monotonic() - began:.1f} s") from error
    if not line:
        raise OSError("closed without an answer")
    who, address, at, seen = line.split()
    return Answer(who, (address, int(at)), seen)


@contextmanager
def machine() -> Iterator[Machine]:
    """Make a machine without a network; it ends with the block."""
    with subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) as holder:
        try:
            made = Machine(holder.pid)
            _until_apart(holder.pid)
            made.run("ip", "link", "set", "lo", "up")
            yield made
        finally:
            holder.kill()


def _until_apart(pid: int) -> None:
    limit = time.monotonic() + 60
    while Path(f"/proc/{pid}/comm").read_text() != "sleep\n":
        assert time.monotonic() < limit
        time.sleep(0.005)


def join(switch: Machine, at: str, machines: Mapping[str, Machine]) -> None:
    """Connect machines, by their addresses, to a switch, which is a machine of that network too."""
    lines = ["link add bridge0 type bridge", f"address add {at}/24 dev bridge0", "link set bridge0 up"]
    switch.run("ip", "-batch", "-", given="\n".join(lines) + "\n")
    for address, item in machines.items():
        cable(switch, address, item)


def cable(switch: Machine, address: str, joining: Machine) -> None:
    """Connect one more machine to a switch, which is its default route."""
    port = f"port{joining.pid}"
    lines = [f"link add {port} type veth peer name eth0 netns {joining.pid}"]
    lines += [f"link set {port} master bridge0", f"link set {port} up"]
    switch.run("ip", "-batch", "-", given="\n".join(lines) + "\n")
    lines = [f"address add {address}/24 dev eth0", "link set eth0 up", "route add default dev eth0"]
    joining.run("ip", "-batch", "-", given="\n".join(lines) + "\n")


@contextmanager
def pair() -> Iterator[tuple[Machine, Machine]]:
    """Make a workload's machine and a client's, linked, with addresses of both families."""
    with machine() as workload, machine() as client:
        cable = f"link add eth0 type veth peer name eth0 netns {client.pid}\n"
        workload.run("ip", "-batch", "-", given=cable)
        for item, mine, other in ((workload, WORKLOAD, CLIENT), (client, CLIENT, WORKLOAD)):
            v4, v6 = socket.AF_INET, socket.AF_INET6
            lines = (
                f"address add {mine[v4]}/24 dev eth0\naddress add {mine[v6]}/64 dev eth0 nodad\n"
                f"link set eth0 up\nroute add default via {other[v4]}\nroute add default via {other[v6]}\n"
            )
            item.run("ip", "-batch", "-", given=lines)
        yield workload, client
