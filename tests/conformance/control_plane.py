"""The control plane under test: our server on a port that survives a restart, and keys for both sides."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from certs.ledger.sqlite import SqliteLedger
from certs.proxy import issue_proxy
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from tests.tools.deadline import until
from tests.tools.own_authority import own_authority
from tools.ports import free_port
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.hooks import AnyNode
from xds.limits import Limits
from xds.protocol.resources.resource import Resource, TypeUrl
from xds.protocol.resources.snapshot import Snapshot
from xds.server.ads import AdsServer
from xds.server.streams.conversation import Conversation
from xds.server.tls import TlsIdentity
from xds.stream_status import TypeStatus

GROUP, NODE = GroupKey("fronts"), NodeKey("front")
DEADLINE = 30.0


@dataclass(frozen=True)
class Keys:
    """The server's identity, and the credential files of one client."""

    tls: TlsIdentity
    certificate_file: Path
    key_file: Path
    ca_file: Path

    @classmethod
    def make(cls, state: Path) -> Self:
        """Issue everything below a folder."""
        now = datetime.now(UTC)
        authority = own_authority(state, TrustDomain("cluster.local"), now)
        server = ads_server_certificate(authority, PairFiles(state), now)
        with SqliteLedger.open(state / "ledger.db") as ledger:
            client = issue_proxy(authority, ledger, ProxyName.parse("u1.svc.ns"), timedelta(days=1), now)
        keys = cls(
            TlsIdentity(server.chain_pem, server.key.reveal(), authority.trust_bundle()),
            state / "client.pem",
            state / "client.key",
            state / "roots.pem",
        )
        keys.certificate_file.write_bytes(client.chain_pem)
        keys.key_file.write_bytes(client.key.reveal())
        keys.ca_file.write_bytes(authority.trust_bundle())
        return keys


@dataclass
class ControlPlane:
    """Our server. While it is stopped, it keeps its port and its resources for the next start."""

    keys: Keys
    port: int
    resources: tuple[Resource, ...] = ()
    cache: SnapshotCache = field(default_factory=SnapshotCache)
    server: AdsServer | None = None

    @classmethod
    async def begin(cls, keys: Keys, ends: AsyncExitStack) -> Self:
        """Start a control plane that ends with the exit stack."""
        plane = cls(keys, free_port("127.0.0.1"))
        ends.push_async_callback(plane.stop)
        await plane.start()
        return plane

    async def start(self) -> None:
        """Start a server with the port and the resources of the previous one, and no other state."""
        self.cache = SnapshotCache()
        self.server = AdsServer(self.cache, AnyNode(NODE), lambda: self.keys.tls, limits=Limits())
        if self.resources:
            self.publish(*self.resources)
        await self.server.start(f"127.0.0.1:{self.port}")

    async def stop(self) -> None:
        """Stop the server, if it runs."""
        server, self.server = self.server, None
        if server is not None:
            await server.stop(0.5)

    def publish(self, *resources: Resource) -> None:
        """Publish these resources for every client."""
        self.resources = resources
        self.cache.publish({GROUP: Snapshot.of(resources)}, {NODE: GROUP})

    def is_settled(self) -> bool:
        """Return whether there is a client, and each client has accepted everything that it should have."""
        streams = self._conversations()
        return bool(streams) and all(
            stream.status().types
            and stream._current is self.cache.snapshot(NODE)
            and not stream._outbox
            and not any(c.unanswered or c.has_news or c.has_removals for c in stream._stream.channels)
            for stream in streams
        )

    async def settled(self, seconds: float = DEADLINE) -> float:
        """Wait until everything published is accepted; return the seconds that took."""
        return await until(self.is_settled, seconds)

    async def update(self, *resources: Resource, seconds: float = DEADLINE) -> float:
        """Publish resources and wait until they are accepted."""
        self.publish(*resources)
        return await self.settled(seconds)

    def type_status(self, type_url: TypeUrl) -> TypeStatus | None:
        """Return the status of a type on the only stream."""
        result = [t for s in self._conversations() for t in s.status().types if t.type_url == type_url]
        return result[0] if result else None

    def _conversations(self) -> list[Conversation]:
        return list(self.server._conversations.values()) if self.server is not None else []
