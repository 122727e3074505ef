"""Servers of one mesh in one process: each with its port, its certificate, and a reading of its own."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from certs.issuers.authority import CertificateAuthority
from meshwright.admin.pages.trial_runner import TrialRunner
from meshwright.admin.replicas.pulse import ServerFacts
from meshwright.admin.replicas.views import ReplicaViews
from meshwright.controller.sharing.peers.client import PeerClient
from meshwright.controller.sharing.peers.door import PeerSubjects, serving_peers
from meshwright.controller.sharing.peers.tls import PeerTls
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import listening
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.problems.problem import Problems
from meshwright.mesh.service import ServiceKey
from meshwright.records.contract import ReplicaId
from meshwright.replicas.membership import Membership
from meshwright.replicas.state import ReplicaState
from meshwright.traffic.taps import Taps, TapTable
from tests.tools.own_authority import own_authority

DOMAIN = TrustDomain("mesh.example")


def now() -> datetime:
    """Return the present, because TLS compares certificates with the real clock."""
    return datetime.now(UTC)


@dataclass
class OneServer:
    """One server: its reading, and what other servers have asked of it."""

    name: str
    reading: Any
    membership: Membership
    tls: PeerTls
    client: PeerClient
    problems: Problems = ()
    facts: ServerFacts = field(default_factory=ServerFacts)
    revoked: list[tuple[str, str]] = field(default_factory=list)
    retried: list[str] = field(default_factory=list)
    is_refusing: bool = False
    at: HostPort | None = None
    taps: Taps = field(
        default_factory=lambda: Taps(
            TapTable(), lambda name: (ServiceKey(name.namespace, name.service),), lambda: None
        )
    )

    @property
    def views(self) -> ReplicaViews:
        """Return the views over all servers."""
        return ReplicaViews(self.client, self.membership, self.reading, lambda: self.facts, lambda: None, now)

    def subjects(self) -> PeerSubjects:
        """Return everything that the port answers from."""

        async def revoke(serial: str, why: str) -> bool:
            self.revoked.append((serial, why))
            return not self.is_refusing

        def retry(proxy: str) -> list[str]:
            self.retried.append(proxy)
            return ["route a"]

        return PeerSubjects(
            reading=self.reading,
            trying=TrialRunner(self.reading, lambda _: ()),  # type: ignore[arg-type, return-value]
            taps=self.taps,
            clock=now,
            own_problems=lambda: self.problems,
            server=lambda: self.facts,
            revoke=revoke,
            retry=retry,
        )


@dataclass
class SomeServers:
    """The servers by name, below one CA."""

    authority: CertificateAuthority
    by_name: dict[str, OneServer]

    def __getitem__(self, name: str) -> OneServer:
        """Return a server."""
        return self.by_name[name]

    def hear(self) -> None:
        """Tell all servers of each other."""
        contents = {ReplicaId(name): server.membership.encoded() for name, server in self.by_name.items()}
        for server in self.by_name.values():
            server.membership.hear(contents)

    def client_context(self, chain: bytes, key: bytes) -> ssl.SSLContext:
        """Return a TLS context with any certificate."""
        from meshwright.tls.key_pair import load_key_pair

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(cadata=self.authority.trust_bundle().decode())
        load_key_pair(context, chain, key)
        return context


@asynccontextmanager
async def some_servers(
    state: Path, readings: dict[str, Any], seconds: float = 10.0, host: str = "127.0.0.1"
) -> AsyncIterator[SomeServers]:
    """Run servers with these readings, which ask each other with a time limit of `seconds`."""
    authority = own_authority(state, DOMAIN, now())
    servers = SomeServers(authority, {})
    async with AsyncExitStack() as stack:
        for name, reading in readings.items():
            membership = Membership(ReplicaId(name), ReplicaState(version="1", is_ready=True))
            tls = PeerTls(authority, name, now())
            client = PeerClient(membership, tls, DOMAIN, seconds)
            server = servers.by_name[name] = OneServer(name, reading, membership, tls, client)
            bound = listening(HostPort(host, 0))
            server.at = HostPort(*bound.getsockname()[:2])
            await stack.enter_async_context(client.opened())
            await stack.enter_async_context(serving_peers(server.subjects(), DOMAIN, bound, tls))
            membership.set_facts(peer_address=str(server.at))
        servers.hear()
        yield servers


Condition = Callable[[], bool]
