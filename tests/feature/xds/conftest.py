"""Fixtures of a server on a real socket and of a raw client over mTLS."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import grpc.aio
import pytest

from certs.ledger.sqlite import SqliteLedger
from certs.proxy import issue_proxy
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.tools.deadline import until
from tests.tools.own_authority import own_authority
from xds.budget import Excess, LimitKind
from xds.cache import NodeKey, SnapshotCache
from xds.hooks import AnyNode, Authenticator, Cause, Peer, Prepare, StreamEnd
from xds.limits import Limits
from xds.protocol.wire import Node, Rejection, Response
from xds.server.ads import SERVICE, AdsServer
from xds.server.tls import TlsIdentity
from xds.stream_status import Variant

DEADLINE = 30.0
LOCAL = "127.0.0.1"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@dataclass(frozen=True)
class Pki:
    """A certificate authority, the server's identity, and two clients."""

    tls: TlsIdentity
    client_chain: bytes
    client_key: bytes
    roots: bytes
    second_chain: bytes
    second_key: bytes

    @property
    def second(self) -> "Pki":
        """The same authority with the second client."""
        return replace(self, client_chain=self.second_chain, client_key=self.second_key)


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    """One PKI for all tests."""
    return make_pki(tmp_path_factory.mktemp("pki"))


def make_pki(state: Path) -> Pki:
    """Issue a CA, a server certificate and two proxy certificates below `state`."""
    now = datetime.now(UTC)
    authority = own_authority(state, TrustDomain("cluster.local"), now)
    server = ads_server_certificate(authority, PairFiles(state), now)
    with SqliteLedger.open(state / "ledger.db") as ledger:
        proxy, second = (
            issue_proxy(authority, ledger, ProxyName.parse(name), timedelta(days=1), now)
            for name in ("u1.svc.ns", "u2.svc.ns")
        )
    return Pki(
        TlsIdentity(server.chain_pem, server.key.reveal(), authority.trust_bundle()),
        proxy.chain_pem,
        proxy.key.reveal(),
        authority.trust_bundle(),
        second.chain_pem,
        second.key.reveal(),
    )


@dataclass
class Seen:
    """An observer that records events."""

    handshakes: int = 0
    refusals: list[str] = field(default_factory=list)
    answers: list[Rejection | None] = field(default_factory=list)
    endings: list[tuple[StreamEnd, str]] = field(default_factory=list)
    excesses: list[tuple[LimitKind, int, int]] = field(default_factory=list)
    sent_bytes: int = 0
    larges: list[tuple[str, str, int]] = field(default_factory=list)
    ended_connections: list[tuple[Peer, Cause]] = field(default_factory=list)

    def ended(self, peer: Peer, cause: Cause) -> None:
        """Record the connection and the cause."""
        self.ended_connections.append((peer, cause))

    def handshake(self) -> None:
        """Count the handshake."""
        self.handshakes += 1

    def opened(self, node_key: NodeKey, peer: Peer, variant: Variant) -> None:
        """Ignore the event."""

    def refused(self, peer: Peer, reason: str) -> None:
        """Record the reason."""
        self.refusals.append(reason)

    def exceeded(self, node_key: NodeKey | None, peer: Peer, excess: Excess) -> None:
        """Record the limit and the value."""
        self.excesses.append((excess.bound, excess.value, excess.limit))

    def sent(self, node_key: NodeKey, response: Response, size: int) -> None:
        """Count the bytes."""
        self.sent_bytes += size

    def large(self, node_key: NodeKey, node: Node | None, response: Response, size: int) -> None:
        """Record type, client program and size."""
        self.larges.append((response.type_url, node.user_agent if node else "", size))

    def answered(
        self, node_key: NodeKey, response: Response, rejection: Rejection | None, stream: int = 0
    ) -> None:
        """Record the answer."""
        self.answers.append(rejection)

    def held(self, node_key: NodeKey, response: Response) -> None:
        """Record nothing."""

    def closed(self, node_key: NodeKey, peer: Peer, ending: StreamEnd, detail: str, stream: int = 0) -> None:
        """Record the reason."""
        self.endings.append((ending, detail))


@dataclass
class Served:
    """A running server with its cache, observer, port and certificates."""

    server: AdsServer
    cache: SnapshotCache
    seen: Seen
    port: int
    tls: list[TlsIdentity]

    @property
    def roots(self) -> bytes:
        """The roots of the server's certificate."""
        return self.tls[0].trust_bundle


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture
async def serve(pki: Pki) -> AsyncIterator[Serve]:
    """A function that starts servers, which stop after the test."""
    running: list[AdsServer] = []

    async def start(
        authenticator: Authenticator | None = None,
        limits: Limits | None = None,
        *,
        host: str = LOCAL,
        prepare: Prepare | None = None,
    ) -> Served:
        cache, seen, tls = SnapshotCache(), Seen(), [pki.tls]
        server = AdsServer(
            cache,
            authenticator or AnyNode(NodeKey("n")),
            lambda: tls[0],
            observer=seen,
            limits=limits,
            prepare=prepare,
        )
        running.append(server)
        return Served(server, cache, seen, await server.start(f"{_bracketed(host)}:0"), tls)

    yield start
    for server in running:
        await server.stop(1.0)


class Client:
    """One raw stream: bytes of requests out, parsed responses in."""

    def __init__(
        self,
        port: int,
        pki: Pki,
        variant: Variant = Variant.SOTW,
        *,
        certificate: bool = True,
        options: tuple[tuple[str, int], ...] = (),
        host: str = LOCAL,
    ) -> None:
        credentials = grpc.ssl_channel_credentials(
            pki.roots,
            pki.client_key if certificate else None,
            pki.client_chain if certificate else None,
        )
        target = ("grpc.ssl_target_name_override", "ads.cluster.local")
        self._variant = variant
        self.channel = grpc.aio.secure_channel(f"{_bracketed(host)}:{port}", credentials, (target, *options))
        method = "StreamAggregatedResources" if variant is Variant.SOTW else "DeltaAggregatedResources"
        self.call = self.channel.stream_stream(f"/{SERVICE}/{method}")()

    async def ask(self, type_url: str, *names: str, nonce: str = "", node: str = "u1") -> None:
        """Send a request. An empty `node` omits the node."""
        request: discovery_pb2.DiscoveryRequest | discovery_pb2.DeltaDiscoveryRequest
        if self._variant is Variant.SOTW:
            request = discovery_pb2.DiscoveryRequest(
                type_url=type_url, resource_names=names, response_nonce=nonce
            )
        else:
            request = discovery_pb2.DeltaDiscoveryRequest(
                type_url=type_url, resource_names_subscribe=names, response_nonce=nonce
            )
        if node:
            request.node.id = node
        await self.send(request)

    async def send(
        self, request: discovery_pb2.DiscoveryRequest | discovery_pb2.DeltaDiscoveryRequest
    ) -> None:
        """Send a request. If the server has already ended the stream, its status has the reason."""
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self.call.write(request.SerializeToString())

    async def response(self) -> discovery_pb2.DiscoveryResponse | discovery_pb2.DeltaDiscoveryResponse:
        """Wait for a response."""
        data = await asyncio.wait_for(self.call.read(), DEADLINE)
        assert data is not grpc.aio.EOF, await self.call.code()
        if self._variant is Variant.SOTW:
            return discovery_pb2.DiscoveryResponse.FromString(data)
        return discovery_pb2.DeltaDiscoveryResponse.FromString(data)

    async def status(self) -> tuple[grpc.StatusCode, str]:
        """Wait for the end of the stream, and return its code and message."""
        async with asyncio.timeout(DEADLINE):
            return await self.call.code(), await self.call.details()


Connect = Callable[..., Client]


@pytest.fixture
async def connect(pki: Pki) -> AsyncIterator[Connect]:
    """A function that opens streams, which close after the test."""
    clients: list[Client] = []

    def start(
        port: int,
        variant: Variant = Variant.SOTW,
        *,
        as_pki: Pki = pki,
        certificate: bool = True,
        options: tuple[tuple[str, int], ...] = (),
        host: str = LOCAL,
    ) -> Client:
        clients.append(Client(port, as_pki, variant, certificate=certificate, options=options, host=host))
        return clients[-1]

    yield start
    for client in clients:
        await client.channel.close()


@pytest.fixture
def another_pki(tmp_path: Path) -> Pki:
    """A client with a certificate of another authority."""
    return make_pki(tmp_path)


async def eventually(condition: Callable[[], object]) -> None:
    """Wait until a condition is true, up to a deadline."""
    await until(condition, DEADLINE)


@pytest.fixture(name="eventually")
def eventually_fixture() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """The function `eventually`."""
    return eventually
