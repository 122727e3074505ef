"""Transparent interception: one network namespace per workload with the iptables rules of a Pod.

The namespaces are connected by a switch, which is a bridge in a namespace of its own. A veth link connects
the switch to the host, for the control plane. Namespaces have no names and no files. A process
`sleep infinity` keeps each namespace alive, and the kernel removes the namespace when this process ends.
"""

import asyncio
import functools
import os
import re
import stat
import sys
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final

from demo.interception import PROXY_UID, STATUS_PORT, Reservations, free_network
from demo.leftovers import LINK_PREFIX
from demo.plane import COMMAND, find_envoy
from demo.supervisor import ChildProcess, Supervisor, run
from demo.topology import PLACES, Mode, Place, TransparentAddresses

PROGRAM_UID: Final = 1501
_SWITCH: Final = "switch"
_QUIET: Final = (
    "for f in all default; do p=/proc/sys/net/ipv6/conf/$f/disable_ipv6; [ ! -e $p ] || echo 1 > $p; done"
)
_RESOLVER: Final = "# Only names of the mesh resolve here, by the hosts file.\nnameserver 127.0.0.1\n"


def routes(table: str) -> list[IPv4Network]:
    """Return the destinations of IPv4 routes in the output of `ip -4 route show table all`."""
    result = re.findall(r"^(?:\w+ )?(\d+\.\d+\.\d+\.\d+(?:/\d+)?)(?: |$)", table, re.MULTILINE)
    return [IPv4Network(destination, strict=False) for destination in result]


def switch_batch(pids: Iterable[tuple[Place, int]]) -> str:
    """Return input of `ip -batch` for the switch: the bridge, and a port for each workload."""
    lines = [
        "link set lo up",
        "link add bridge0 type bridge",
        "link set bridge0 up",
        "link set uplink master bridge0",
        "link set uplink up",
    ]
    for place, pid in pids:
        lines += [
            f"link add port{place.index} type veth peer name eth0 netns {pid}",
            f"link set port{place.index} master bridge0",
            f"link set port{place.index} up",
        ]
    return "\n".join(lines) + "\n"


def place_batch(addresses: TransparentAddresses, place: Place) -> str:
    """Return input of `ip -batch` for a workload: the address, and a default route for virtual addresses."""
    return (
        "link set lo up\n"
        "link set eth0 up\n"
        f"address add {addresses.workload(place)}/24 dev eth0\n"
        f"route add default via {addresses.control_plane} dev eth0\n"
    )


def is_closed_to_others(path: Path) -> bool:
    """Return whether users other than the owner have no access to `path`."""
    if not path.exists():
        return False
    resolved = path.resolve()
    if not resolved.stat().st_mode & stat.S_IROTH:
        return True
    return any(not parent.stat().st_mode & stat.S_IXOTH for parent in resolved.parents)


def as_user(
    uid: int, argv: Sequence[str], needed: Iterable[Path], capabilities: Iterable[str] = ()
) -> list[str]:
    """Return a command that runs as another user with only the given capabilities, by the names of setpriv.

    If a needed path is in a closed directory, for example a clone under /root, the process also gets the
    capability to read all files. The user of the demo has this right anyway.
    """
    names = [*capabilities]
    if any(is_closed_to_others(path) for path in needed):
        names.append("dac_read_search")
    kept = ",".join(["-all", *(f"+{name}" for name in names)])
    capability = ["--inh-caps", kept, "--bounding-set", kept]
    if names:
        capability += ["--ambient-caps", ",".join(f"+{name}" for name in names)]
    user = ["--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--no-new-privs"]
    return ["setpriv", *user, *capability, "--pdeathsig", "KILL", "--", *argv]


class TransparentInterception:
    """Interception by network namespaces; sidecars run as uid 1500, and programs as uid 1501."""

    mode = Mode.TRANSPARENT

    def __init__(self, supervisor: Supervisor, state: Path, network: str, reserved: Reservations) -> None:
        self.addresses = TransparentAddresses(network)
        self.control_plane = str(self.addresses.control_plane)
        self._supervisor = supervisor
        self._state = state
        self._reserved = reserved
        self._holders: dict[str, ChildProcess] = {}
        self._named: set[str] = set()
        self._link = f"{LINK_PREFIX}{os.getpid():x}"

    @classmethod
    async def create(cls, supervisor: Supervisor, state: Path) -> "TransparentInterception":
        """Return the interception, with a network that overlaps no route of this machine."""
        table = await run(["ip", "-4", "route", "show", "table", "all"])
        reserved = Reservations()
        return cls(supervisor, state, free_network(routes(table), reserved.take), reserved)

    async def prepare(self) -> None:
        """Create the namespaces, the switch, and the iptables rules of each workload."""
        for name in (_SWITCH, *(place.name for place in PLACES)):
            self._holders[name] = await self._hold(name)
        for holder in self._holders.values():
            await self._supervisor.until(f"namespaces of {holder.name}", functools.partial(_is_apart, holder))
        await self._join_host()
        pids = [(place, self._holders[place.name].pid) for place in PLACES]
        await run([*self._enter(_SWITCH), "ip", "-batch", "-"], stdin=switch_batch(pids))
        await asyncio.gather(*(self._prepare_place(place) for place in PLACES))

    async def _hold(self, name: str) -> ChildProcess:
        command = ["unshare", "--net", "--mount", "--propagation", "private", "sleep", "infinity"]
        return await self._supervisor.start(f"namespace {name}", command, self._state / "logs" / "places.log")

    async def _join_host(self) -> None:
        # Recorded before the link exists, so that an interrupted demo leaves no unknown link.
        self._supervisor.record.links.add(self._link)
        self._supervisor.record.save()
        switch = self._holders[_SWITCH].pid
        lines = [
            f"link add {self._link} type veth peer name uplink netns {switch}",
            f"address add {self.control_plane}/24 dev {self._link}",
            f"link set {self._link} up",
        ]
        await run(["ip", "-batch", "-"], stdin="\n".join(lines) + "\n")

    async def _prepare_place(self, place: Place) -> None:
        enter = self._enter(place.name)
        await run([*enter, "sh", "-c", _QUIET])
        await run([*enter, "ip", "-batch", "-"], stdin=place_batch(self.addresses, place))
        # The legacy backend of iptables locks a file; its default is outside the state directory and would
        # stay.
        lock = {"XTABLES_LOCKFILE": str((self._state / "xtables.lock").absolute())}
        await run([*enter, str(COMMAND), "intercept"], environment=lock)

    def _enter(self, name: str, *, mounts: bool = False) -> list[str]:
        namespaces = f"/proc/{self._holders[name].pid}/ns"
        mount = [f"--mount={namespaces}/mnt"] if mounts else []
        return ["nsenter", f"--net={namespaces}/net", *mount, "--"]

    async def name_services(self, place: Place, hosts: str) -> None:
        """Mount a hosts file over /etc/hosts in the workload's mount namespace, unseen by other processes."""
        directory = self._state / "places" / place.name
        directory.mkdir(parents=True, exist_ok=True)
        files = {"hosts": f"127.0.0.1 localhost\n{hosts}", "resolv.conf": _RESOLVER}
        for name, text in files.items():
            path = directory / name
            path.write_text(text, "utf-8")
            path.chmod(0o644)
            # Later calls rewrite the mounted file, which need not be mounted again.
            if place.name not in self._named:
                target = _system_file(name)
                enter = self._enter(place.name, mounts=True)
                await run([*enter, "mount", "--bind", str(path.absolute()), target])
        self._named.add(place.name)

    def status(self, place: Place) -> str:
        """Return the namespace's address and the usual port.

        The iptables rules do not intercept this port.
        """
        return f"{self.addresses.workload(place)}:{STATUS_PORT}"

    def sidecar(self, place: Place, argv: Sequence[str]) -> list[str]:
        """Return the command of a sidecar, as uid 1500 in the namespaces of the workload."""
        needed = [*map(Path, argv[:1]), Path(sys.executable), Path(__file__), Path(find_envoy()), self._state]
        return [*self._enter(place.name, mounts=True), *as_user(PROXY_UID, argv, needed)]

    def program(self, place: Place, argv: Sequence[str]) -> list[str]:
        """Return the command of a program, as uid 1501 in the namespaces of the workload."""
        needed = [Path(sys.executable), Path(__file__), self._state]
        return [*self._enter(place.name, mounts=True), *as_user(PROGRAM_UID, argv, needed)]

    def release(self) -> None:
        """Release the reserved IP network."""
        self._reserved.release()

    def own(self, place: Place, directory: Path, *, sidecar: bool) -> None:  # noqa: ARG002 - as above
        """Make the uid of sidecars, or of programs, the owner of a directory and of the files in it."""
        uid = PROXY_UID if sidecar else PROGRAM_UID
        for path in (directory, *directory.rglob("*")):
            os.chown(path, uid, uid)


def _system_file(name: str) -> str:
    """Return the real path of a file of /etc, because a bind mount needs the target of a symbolic link."""
    return str(Path("/etc", name).resolve())


def _is_apart(holder: ChildProcess) -> bool:
    """Return whether the process `holder` has its own namespaces and has started `sleep`."""
    try:
        command = Path(f"/proc/{holder.pid}/cmdline").read_bytes()
    except OSError:
        return False
    return command.startswith(b"sleep")
