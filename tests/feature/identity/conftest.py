"""Fixtures of a whole server in this process, on free ports, and of its clients over real sockets."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest

from certs.contract import Authority, Names, Usage
from certs.custody import LEDGER_FILE
from certs.issuers.file_authority import WatchedFiles, WatchedIssuer
from certs.keys.pair import Pair, issue_pair
from certs.ledger.entry import LedgerEntry
from certs.ledger.sqlite import SqliteLedger
from certs.state import sealed_state
from meshwright.controller.app import run
from meshwright.controller.server import BoundAddresses
from meshwright.controller.settings.settings import load
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.meshes import texts
from tests.tools.deadline import until
from tests.tools.own_authority import own_authority
from xds.protocol.resources.resource import CLUSTER

DELTA = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
SERVICE = texts.service("store", texts.port(80, 18080))


@dataclass
class Client:
    """One delta stream with short methods for requests."""

    channel: grpc.aio.Channel
    call: Any = field(init=False)

    def __post_init__(self) -> None:
        """Open the stream."""
        self.call = self.channel.stream_stream(
            DELTA,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=discovery_pb2.DeltaDiscoveryResponse.FromString,
        )()

    async def ask(self, node: str) -> None:
        """Subscribe to every cluster."""
        await self.call.write(
            discovery_pb2.DeltaDiscoveryRequest(node=base_pb2.Node(id=node), type_url=CLUSTER)
        )

    async def receive(self) -> discovery_pb2.DeltaDiscoveryResponse:
        """Return the next response, after it was acknowledged."""
        response: discovery_pb2.DeltaDiscoveryResponse = await self.call.read()
        assert response is not grpc.aio.EOF, await self.call.code()
        await self.call.write(
            discovery_pb2.DeltaDiscoveryRequest(type_url=response.type_url, response_nonce=response.nonce)
        )
        return response

    async def names(self) -> set[str]:
        """Return the resource names of the next response, which must remove none."""
        response = await self.receive()
        assert not response.removed_resources
        return {resource.name for resource in response.resources}

    async def ended(self) -> tuple[grpc.StatusCode, str]:
        """Read until the server ends the stream. Return the status and its message."""
        with contextlib.suppress(grpc.aio.AioRpcError):  # the status is read below
            while await self.call.read() is not grpc.aio.EOF:
                continue
        return await self.call.code(), await self.call.details()


class Server:
    """The running server, its mesh directory, and clients with certificates for a test."""

    def __init__(
        self, mesh: Path, state: Path, bound: BoundAddresses, signs: Authority | None = None
    ) -> None:
        self.mesh = mesh
        self.state = state
        self.bound = bound
        self.authority = signs or authority(state, {})

    def write(self, *documents: str, port: int = 18080) -> None:
        """Replace the manifests by the service, with its target port, and these documents."""
        text = "\n---\n".join((SERVICE, *documents))
        (self.mesh / "mesh.yaml").write_text(text.replace("18080", str(port)))

    def certificate(self, common_name: str, *, issued: bool = True, lived: timedelta = timedelta()) -> Pair:
        """Return a certificate with a lifetime of one hour.

        `issued`: it is in the ledger. `lived`: its age.
        """
        now = datetime.now(UTC) - lived
        pair = issue_pair(self.authority, Usage.PROXY, Names(common_name), timedelta(hours=1), now)
        if issued:
            name = ProxyName.parse(common_name)
            with SqliteLedger.open(self.state / LEDGER_FILE) as ledger:
                signer = self.authority.fingerprint
                ledger.record(
                    LedgerEntry.issued(pair.leaf.serial, name, now, pair.leaf.not_after, signer=signer)
                )
        return pair

    @asynccontextmanager
    async def client(self, pair: Pair | None, roots: bytes | None = None) -> AsyncIterator[Client]:
        """Open a separate channel with or without a client certificate, and a stream on it."""
        credentials = grpc.ssl_channel_credentials(
            roots or self.authority.trust_bundle(),
            pair.key.reveal() if pair else None,
            pair.chain_pem if pair else None,
        )
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        async with grpc.aio.secure_channel(str(self.bound.ads), credentials, options) as channel:
            client = Client(channel)
            yield client
            client.call.cancel()

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request over the Unix socket, as commands do."""
        connector = aiohttp.UnixConnector(str(self.state / "meshwright.sock"))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, f"http://localhost{path}", json=body) as response,
        ):
            assert response.status == 200, await response.text()
            return await response.json()

    async def proxies(self) -> dict[str, str]:
        """Return the state of each proxy by common name."""
        return {proxy["cn"]: proxy["state"] for proxy in (await self.ask("GET", "/debug/proxy"))["proxies"]}

    async def until(self, expected: dict[str, str]) -> None:
        """Return once the proxies have these states."""
        result: dict[str, str] = {}

        async def holds() -> bool:
            result.clear()
            result.update(await self.proxies())
            return result == expected

        await until(holds, explain=lambda: result)

    async def metric(self, line: str) -> float:
        """Return the value of one line of /metrics, or 0 if the line is missing."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{self.bound.http}/metrics") as response,
        ):
            for result in (await response.text()).splitlines():
                if result.startswith(line + " "):
                    return float(result.rpartition(" ")[2])
        return 0.0

    async def counted(self, line: str, least: int) -> float:
        """Return a counter once it is at least `least`. A client may see an event before it is counted."""
        while (number := await self.metric(line)) < least:
            await asyncio.sleep(0.01)
        return number


def authority(state: Path, settings: Mapping[str, object]) -> Authority:
    """Return the issuer of a server with these settings."""
    domain, now = TrustDomain("cluster.local"), datetime.now(UTC)
    passphrase, elsewhere = (settings.get(item) for item in ("key_passphrase_file", "authority_directory"))
    if isinstance(elsewhere, Path):
        return WatchedIssuer(WatchedFiles.within(elsewhere), domain, now)
    seal = sealed_state.opened(state, passphrase if isinstance(passphrase, Path) else None)
    return own_authority(state, domain, now, seal)


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """A function that starts servers with the test's own mesh and state directories."""
    async with serving(tmp_path) as start:
        yield start


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Callable[..., Any]]:
    """Yield a function that starts servers with mesh and state in a folder. End them afterwards."""
    stop = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def start(*documents: str, **settings: object) -> Server:
        mesh, state = folder / "mesh", folder / "state"
        mesh.mkdir()
        (mesh / "mesh.yaml").write_text("\n---\n".join((SERVICE, *documents)))
        started: asyncio.Future[BoundAddresses] = asyncio.get_running_loop().create_future()
        anywhere = "127.0.0.1:0"
        flags = {"mesh": mesh, "state": state, "drain_seconds": 1}
        flags |= dict.fromkeys(("ads_address", "http_address", "debug_address"), anywhere)
        task = asyncio.create_task(run(load(flags | settings), stop, started=started.set_result))
        tasks.append(task)
        ready = asyncio.ensure_future(started)
        task.add_done_callback(lambda _: ready.cancel())
        try:
            bound = await ready
        except asyncio.CancelledError:
            await task  # raises the reason of the failed start
            raise
        return Server(mesh, state, bound, authority(state, settings))

    yield start
    stop.set()
    await asyncio.gather(*tasks)
