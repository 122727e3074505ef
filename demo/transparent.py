"""Transparent interception: a network namespace per place, joined by a switch, with a pod's iptables rules.

Namespaces have no names and no files: each is held by a process that does nothing, and is gone with it.
The switch is a bridge in a namespace of its own; one link joins it to the host, for the control plane.
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
_RESOLVER: Final = (
    "# Names of the mesh stand in the hosts file; there are no others here.\nnameserver 127.0.0.1\n"
)


def routes(table: str) -> list[IPv4Network]:
    """Read the destinations of the IPv4 routes in the output of `ip -4 route show table all`."""
    found = re.findall(r"^(?:\w+ )?(\d+\.\d+\.\d+\.\d+(?:/\d+)?)(?: |$)", table, re.MULTILINE)
    return [IPv4Network(destination, strict=False) for destination in found]


def switch_batch(pids: Iterable[tuple[Place, int]]) -> str:
    """Return the `ip -batch` input for the switch: its bridge, and a port to each place."""
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
    """Return the `ip -batch` input for a place: its address, and a default route for virtual addresses."""
    return (
        "link set lo up\n"
        "link set eth0 up\n"
        f"address add {addresses.workload(place)}/24 dev eth0\n"
        f"route add default via {addresses.control_plane} dev eth0\n"
    )


def is_closed_to_others(path: Path) -> bool:
    """Say whether users other than the owner cannot get to `path`."""
    if not path.exists():
        return False
    resolved = path.resolve()
    if not resolved.stat().st_mode & stat.S_IROTH:
        return True
    return any(not parent.stat().st_mode & stat.S_IXOTH for parent in resolved.parents)


def as_user(
    uid: int, argv: Sequence[str], needed: Iterable[Path], capabilities: Iterable[str] = ()
) -> list[str]:
    """Return a command under another user, with these capabilities (as setpriv names them) alone.

    Where what it needs stands in a closed directory (a clone under /root), it may read, and only read,
    past permissions: the demo's user may do so anyhow.
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
    """Every place is a network namespace; sidecars run as uid 1500, programs as another."""

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
        """Choose a network that collides with no route of this machine."""
        table = await run(["ip", "-4", "route", "show", "table", "all"])
        reserved = Reservations()
        return cls(supervisor, state, free_network(routes(table), reserved.take), reserved)

    async def prepare(self) -> None:
        """Make the namespaces, the switch between them, and the rules in each."""
        for name in (_SWITCH, *(place.name for place in PLACES)):
            self._holders[name] = await self._hold(name)
        for holder in self._holders.values():
            await self._supervisor.until(f"namespaces of {holder.name}", functools.partial(_is_apart, holder))
        await self._join_host()
        pids = [(place, self._holders[place.name].pid) for place in PLACES]
        await run([*self._enter(_SWITCH), "ip", "-batch", "-"], given=switch_batch(pids))
        await asyncio.gather(*(self._prepare_place(place) for place in PLACES))

    async def _hold(self, name: str) -> ChildProcess:
        command = ["unshare", "--net", "--mount", "--propagation", "private", "sleep", "infinity"]
        return await self._supervisor.start(f"namespace {name}", command, self._state / "logs" / "places.log")

    async def _join_host(self) -> None:
        self._supervisor.record.links.add(self._link)
        self._supervisor.record.save()
        switch = self._holders[_SWITCH].pid
        lines = [
            f"link add {self._link} type veth peer name uplink netns {switch}",
            f"address add {self.control_plane}/24 dev {self._link}",
            f"link set {self._link} up",
        ]
        await run(["ip", "-batch", "-"], given="\n".join(lines) + "\n")

    async def _prepare_place(self, place: Place) -> None:
        enter = self._enter(place.name)
        await run([*enter, "sh", "-c", _QUIET])
        await run([*enter, "ip", "-batch", "-"], given=place_batch(self.addresses, place))
        # The legacy backend locks a file; here it need not be one that stays.
        lock = {"XTABLES_LOCKFILE": str((self._state / "xtables.lock").absolute())}
        await run([*enter, str(COMMAND), "intercept"], environment=lock)

    def _enter(self, name: str, *, mounts: bool = False) -> list[str]:
        namespaces = f"/proc/{self._holders[name].pid}/ns"
        mount = [f"--mount={namespaces}/mnt"] if mounts else []
        return ["nsenter", f"--net={namespaces}/net", *mount, "--"]

    async def name_services(self, place: Place, hosts: str) -> None:
        """Put a hosts file over /etc/hosts in the place's own mount namespace; nothing outside changes."""
        directory = self._state / "places" / place.name
        directory.mkdir(parents=True, exist_ok=True)
        files = {"hosts": f"127.0.0.1 localhost\n{hosts}", "resolv.conf": _RESOLVER}
        for name, text in files.items():
            path = directory / name
            path.write_text(text, "utf-8")
            path.chmod(0o644)
            if place.name not in self._named:
                target = _system_file(name)
                enter = self._enter(place.name, mounts=True)
                await run([*enter, "mount", "--bind", str(path.absolute()), target])
        self._named.add(place.name)

    def status(self, place: Place) -> str:
        """Return the usual address: what is asked there from outside is not intercepted."""
        return f"{self.addresses.workload(place)}:{STATUS_PORT}"

    def sidecar(self, place: Place, argv: Sequence[str]) -> list[str]:
        """Return the command under the sidecar's uid, in the place."""
        needed = [*map(Path, argv[:1]), Path(sys.executable), Path(__file__), Path(find_envoy()), self._state]
        return [*self._enter(place.name, mounts=True), *as_user(PROXY_UID, argv, needed)]

    def program(self, place: Place, argv: Sequence[str]) -> list[str]:
        """Return the command under the programs' uid, in the place."""
        needed = [Path(sys.executable), Path(__file__), self._state]
        return [*self._enter(place.name, mounts=True), *as_user(PROGRAM_UID, argv, needed)]

    def release(self) -> None:
        """Let others have the addresses."""
        self._reserved.release()

    def own(self, place: Place, directory: Path, *, sidecar: bool) -> None:  # noqa: ARG002 - as above
        """Give a directory and what is in it to the sidecar's (or the programs') uid."""
        uid = PROXY_UID if sidecar else PROGRAM_UID
        for path in (directory, *directory.rglob("*")):
            os.chown(path, uid, uid)


def _system_file(name: str) -> str:
    """Return where a file of /etc really stands: it may be a symbolic link."""
    return str(Path("/etc", name).resolve())


def _is_apart(holder: ChildProcess) -> bool:
    """Say whether a holder has its namespaces and has become the program that does nothing."""
    try:
        command = Path(f"/proc/{holder.pid}/cmdline").read_bytes()
    except OSError:
        return False
    return command.startswith(b"sleep")
