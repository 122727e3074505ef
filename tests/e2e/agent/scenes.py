"""A shop and its customer in a live mesh, with agents for their workloads."""

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import aiohttp

from certs.proxy import issue_proxy
from tests.golden.envoys import HERE, Place
from tests.golden.running_mesh import LiveMesh
from tests.tools.deadline import until
from tools.ports import free_port

NET = f"127.{60 + os.getpid() % 30}.{os.getpid() // 30 % 250}"
SERVER, APPLICATION, CLIENT = f"{NET}.1", f"{NET}.2", f"{NET}.3"
PORT = 8080
DRAIN_SECONDS = 2
"""Envoy's own drain time; an agent that ends may serve longer."""
MESH = f"""
apiVersion: v1
kind: Service
metadata: {{name: shop, namespace: default}}
spec: {{selector: {{app: shop}}, ports: [{{name: web, port: 80, targetPort: {PORT}, appProtocol: http}}]}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: shop, namespace: default, labels: {{app: shop}}}}
spec: {{address: {SERVER}, applicationAddress: {APPLICATION}, serviceAccount: shop, uuid: shop-uuid}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: alice, namespace: default, labels: {{app: alice}}}}
spec:
  address: {CLIENT}
  serviceAccount: alice
  uuid: alice-uuid
  upstreams: [{{service: shop, port: 80, address: {CLIENT}, localPort: {PORT}}}]
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {{name: all, namespace: default}}
spec: {{matches: [{{name: all, pathRegex: .*, methods: ['*']}}]}}
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {{name: alice-to-shop, namespace: default}}
spec:
  destination: {{kind: ServiceAccount, name: shop, namespace: default}}
  sources: [{{kind: ServiceAccount, name: alice, namespace: default}}]
  rules: [{{kind: HTTPRouteGroup, name: all, matches: [all]}}]
"""


class Agent:
    """A running `meshwright agent` with its log and status server."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        folder: Path,
        status: str,
        get: "Get",
        admin: str | None = None,
    ) -> None:
        self.process = process
        self.get = get
        self.folder = folder
        self.admin = f"unix:{folder / 'run' / 'admin.sock'}:" if admin is None else f"http://{admin}"
        self.status = f"http://{status}"

    @property
    def events(self) -> list[dict[str, object]]:
        """Return the complete log lines of the agent; Envoy's lines may be among or within them."""
        result = []
        for line in (self.folder / "agent.log").read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                result.append(json.loads(line))
        return [item for item in result if isinstance(item, dict) and "event" in item]

    def started(self) -> list[int]:
        """Return the process ids of all Envoys so far."""
        return [int(str(event["pid"])) for event in self.events if event["event"] == "envoy started"]

    async def ready(self) -> bool:
        """Return whether the agent is ready."""
        return (await self.get(f"{self.status}/healthz/ready"))[0] == 200

    async def epoch(self) -> int:
        """Return the epoch of the Envoy that responds, or -1 if none is live."""
        status, text = await self.get(f"{self.admin}/server_info")
        result = json.loads(text) if status == 200 else {}
        if result.get("state") != "LIVE":
            return -1
        return int(result["command_line_options"].get("restart_epoch", 0))


class Scene:
    """A mesh, and agents for its workloads."""

    def __init__(self, mesh: LiveMesh, envoy: str, meshwright: str, ends: AsyncExitStack) -> None:
        self.mesh = mesh
        self._envoy = envoy
        self.meshwright = meshwright
        self._ends = ends

    def issue(self, uuid: str, folder: Path) -> str:
        """Put a new certificate for a workload's proxy into a directory, one file after the other."""
        name = self.mesh.workload(uuid).proxy_name
        assert name is not None
        now = datetime.now(UTC)
        made = issue_proxy(self.mesh.authority, self.mesh.ledger, name, timedelta(days=1), now)
        (folder / "proxy.key").touch(mode=0o600)
        (folder / "proxy.key").write_bytes(made.key.reveal())
        (folder / "proxy.pem").write_bytes(made.chain_pem)
        (folder / "ca.pem").write_bytes(self.mesh.authority.trust_bundle())
        return made.serial

    async def agent(self, uuid: str, *more: str) -> Agent:
        """Start an agent and wait until its proxy is ready."""
        made = await self.start(uuid, *more)
        await until(made.ready)
        return made

    async def start(self, uuid: str, *more: str) -> Agent:
        """Start an agent."""
        folder = self.mesh.state / uuid
        (folder / "credentials").mkdir(parents=True)
        self.issue(uuid, folder / "credentials")
        status = f"{NET}.9:{free_port(f'{NET}.9')}"
        command = [self.meshwright, "agent", "--credentials", str(folder / "credentials")]
        command += ["--ads", f"127.0.0.1:{self.mesh.ads_port}", "--run", str(folder / "run")]
        command += ["--envoy", self._envoy, "--status", status, "--concurrency", "1"]
        command += ["--termination-least-seconds", "0", "--termination-most-seconds", "2"]
        command += ["--drain-seconds", str(DRAIN_SECONDS), "--parent-shutdown-seconds", "3", *more]
        with (folder / "agent.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
        admin = more[more.index("--admin") + 1] if "--admin" in more else None
        made = Agent(process, folder, status, get, admin)
        self._ends.push_async_callback(end, made)
        return made


async def end(agent: Agent) -> None:
    """End an agent, if it runs."""
    if agent.process.returncode is None:
        agent.process.terminate()
        async with asyncio.timeout(60):
            await agent.process.wait()


class Get(Protocol):
    """Function that sends a request and returns status and text; status 0 without a response."""

    async def __call__(self, url: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        """Send a request."""


async def get(url: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Send a request on a new connection; status 0 without a response."""
    return await get_from(HERE, url, method, **headers)


async def get_from(place: Place, url: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Send a request from a place, or to a socket by unix:SOCKET:/PATH, the same from every place."""
    socket, _, path = url.removeprefix("unix:").partition(":")
    is_socket = url.startswith("unix:")
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(socket)) if is_socket else place.session()
        ) as session:
            url = f"http://localhost{path}" if is_socket else url
            answer = await session.request(method, url, headers=headers, timeout=aiohttp.ClientTimeout(15))
            return answer.status, await answer.text()
    except (aiohttp.ClientError, OSError, TimeoutError):
        return 0, ""


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request and close; also close if the client closes without a request."""
    try:
        # Who looks whether the port is open sends nothing, and waits for no answer.
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nok\n")
            await writer.drain()
    finally:
        writer.close()


def is_alive(pid: int) -> bool:
    """Return whether a process runs and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def when(condition: Callable[[], bool]) -> Awaitable[float]:
    """Wait for a condition that needs no request."""

    async def holds() -> bool:
        return condition()

    return until(holds)


async def answered() -> bool:
    """Return whether the customer gets an answer from the shop."""
    return (await get(f"http://{CLIENT}:{PORT}/"))[0] == 200
