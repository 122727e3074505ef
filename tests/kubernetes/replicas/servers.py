"""Servers of one mesh, each with its own state directory, and the signals that a test sends them."""

import asyncio
import json
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from meshwright.mesh.identity import ProxyName
from meshwright.records.kubernetes.store import LEASE
from tests.tools.deadline import until
from tests.tools.program import Program, Server
from tools.ports import free_port
from tools.real_parts.keys import LOOPBACK

SECONDS: Final = 90.0
PEERS_REACHED_AT: Final = "127.0.0.2"
"""Address of the relays through which servers reach the ports for each other."""
_BEGINS: Final = ("lease acquired", "leadership begins")
_ENDS: Final = ("lease released", "lease lost", "leadership ends")
"""Events of the log by which leadership begins and ends, in Kubernetes and in etcd."""
_STREAMS: Final = re.compile(r"^meshwright_xds_streams\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass
class Replica:
    """One server. Its addresses stay the same over restarts, so that proxies find it again."""

    name: str
    program: Program
    flags: Sequence[str]
    ads: str = field(default_factory=lambda: f"{LOOPBACK}:{free_port(LOOPBACK)}")
    joining: str = field(default_factory=lambda: f"{LOOPBACK}:{free_port(LOOPBACK)}")
    peers: str = field(default_factory=lambda: f"{LOOPBACK}:{free_port(LOOPBACK)}")
    renewal: str = field(default_factory=lambda: f"{LOOPBACK}:{free_port(LOOPBACK)}")
    server: Server | None = None
    is_frozen: bool = False

    @property
    def running(self) -> Server:
        """Return the running server."""
        assert self.server is not None, f"{self.name} does not run"
        return self.server

    @property
    def is_alive(self) -> bool:
        """Return whether the process runs and answers."""
        return self.server is not None and self.server.process.poll() is None and not self.is_frozen

    async def start(self) -> None:
        """Start the server, and return once it serves."""
        self.server = await asyncio.to_thread(self.program.serve, *self._all_flags())

    async def refused(self) -> str:
        """Start a server that must refuse to start; return its only sentence."""
        return await asyncio.to_thread(self.program.refused, *self._all_flags())

    def _all_flags(self) -> tuple[str, ...]:
        settings = (
            f"enrolment_address={self.joining}",
            f"renewal_address={self.renewal}",
            f"peer_address={self.peers}",
            f"peer_reached_at={PEERS_REACHED_AT}",
        )
        return (*self.flags, f"--ads-address={self.ads}", *(f"--set={setting}" for setting in settings))

    async def kill(self) -> None:
        """Send SIGKILL."""
        self.running.process.kill()
        await asyncio.to_thread(self.running.process.wait)
        self.is_frozen = False

    async def stop(self) -> None:
        """Send SIGTERM, and return once the server has ended in order."""
        await asyncio.to_thread(self.running.stop)

    def freeze(self) -> None:
        """Send SIGSTOP: the process stops, and its connections stay open."""
        self.running.process.send_signal(signal.SIGSTOP)
        self.is_frozen = True

    def thaw(self) -> None:
        """Send SIGCONT."""
        self.running.process.send_signal(signal.SIGCONT)
        self.is_frozen = False

    async def ready(self) -> tuple[int, str]:
        """Return status and text of the readiness probe."""
        return await self._get("/healthz/ready")

    async def is_well(self) -> bool:
        """Return whether the server is ready, and has no remark on the store."""
        status, text = await self.ready()
        return status == 200 and "shared" not in text

    async def streams(self) -> int:
        """Return the number of open streams of proxies."""
        return sum(int(float(number)) for number in _STREAMS.findall((await self._get("/metrics"))[1]))

    def leads(self) -> bool:
        """Return whether the log of this living server says that it leads."""
        return self.is_alive and self.terms()[-1:] == [True]

    def terms(self) -> list[bool]:
        """Return True for each beginning of leadership in the log, and False for each end, in order."""
        lines = [line for line in self.running.log() if line.get("lease", LEASE) == LEASE]
        return [line["event"] in _BEGINS for line in lines if line["event"] in (*_BEGINS, *_ENDS)]

    async def act(self, path: str, body: object) -> tuple[int, str]:
        """Send a changing request to the socket, as commands do; return the status and the text."""
        connector = aiohttp.UnixConnector(str(self.program.state / "meshwright.sock"))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(f"http://localhost{path}", json=body) as response,
        ):
            return response.status, await response.text()

    async def issued(self, name: ProxyName, folder: Path) -> str:
        """Issue a certificate into a folder, and return its serial."""
        named = ("--uuid", str(name.uuid), "--service", str(name.service), "--namespace", str(name.namespace))
        state = ("--state", str(self.program.state), "--out", str(folder), "--anyway")
        issue = ("certs", "issue-proxy", *state, *named)
        status, out, complaint = await asyncio.to_thread(self.program.run, *issue)
        assert status == 0, complaint
        for end in ("pem", "key"):
            shutil.copy(folder / f"proxy.{end}", folder / f"{name}.{end}")
        return out.splitlines()[1].removeprefix("serial ")

    async def token(self, name: ProxyName, out: Path) -> str:
        """Create a join token with one use for a proxy."""
        named = ("--uuid", str(name.uuid), "--service", str(name.service), "--namespace", str(name.namespace))
        state = ("--state", str(self.program.state), "--uses", "1", "--out", str(out), "--anyway")
        create = ("certs", "token", "create", *state, *named)
        status, _, complaint = await asyncio.to_thread(self.program.run, *create)
        assert status == 0, complaint
        return out.read_text().strip()

    async def revoke(self, serial: str) -> tuple[int, str]:
        """Revoke a certificate at this server; return the HTTP status and the text."""
        return await self.act("/certs/revoke", {"serial": serial, "reason": "the test says so"})

    async def view(self, path: str) -> Mapping[str, Any]:
        """Return an answer of the API about all servers of the mesh."""
        status, text = await self._get(f"/api/v1{path}", "debug")
        assert status == 200, (status, text)
        answer = json.loads(text)
        assert isinstance(answer, dict), text
        return answer

    async def _get(self, path: str, port: str = "http") -> tuple[int, str]:
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5)) as session,
                session.get(f"http://{self.running.bound[port]}{path}") as response,
            ):
                return response.status, await response.text()
        except (aiohttp.ClientError, OSError, TimeoutError):
            return 0, ""


def alive(replicas: Sequence[Replica]) -> list[Replica]:
    """Return the running servers."""
    return [replica for replica in replicas if replica.is_alive]


async def until_led(replicas: Sequence[Replica], seconds: float = SECONDS) -> Replica:
    """Wait until exactly one of the running servers leads, and return it."""
    await until(lambda: len(leaders(replicas)) == 1, seconds, lambda: f"leaders: {leaders(replicas)}")
    return leaders(replicas)[0]


def leaders(replicas: Sequence[Replica]) -> list[Replica]:
    """Return the running servers that lead by their own logs."""
    return [replica for replica in alive(replicas) if replica.leads()]
