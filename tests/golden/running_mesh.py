"""A small running mesh: our ADS server, real Envoys, applications in this process.

Interception is explicit, on separate loopback addresses. Everything between manifest and socket is real.
"""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

from catalog.policy.edge import edge_authorities, edge_secrets
from catalog.policy.group_policy import proxy_policy
from catalog.policy.inbound import LOOPBACK
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.groups import groups
from catalog.relations.identities import service_identities
from catalog.store.inventory import by_identity, by_sidecar
from catalog.store.view import MeshSettings, View
from certs.issuers.authority import CertificateAuthority
from certs.ledger.contract import Ledger
from certs.ledger.sqlite import SqliteLedger
from certs.manager import CertificateManager
from certs.peer import read_peer
from certs.proxy import issue_proxy
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.agent.envoy.command import environment
from meshwright.agent.envoy.lifecycle import EnvoyEnd
from meshwright.delivery.proxies.identity import HoldReason
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import IpAddress, TrustDomain
from meshwright.mesh.workload import Edge, Explicit, Workload
from meshwright.providers.directory.manifests import Manifests
from meshwright.sidecars.envoy.bootstrap.bootstrap import AdsProtocol, BootstrapSettings, bootstrap
from meshwright.sidecars.envoy.security.secrets import (
    client_authorities,
    edge_certificate,
    service_certificate,
    trust_root,
)
from tests.golden.beacon import beacon
from tests.golden.envoys import HERE, Place, RunningEnvoy, keep
from tests.meshes.resources import resources
from tests.tools.deadline import until
from tests.tools.envoy import program as envoy_program
from tests.tools.own_authority import own_authority
from tools.ports import free_port
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.hooks import Peer
from xds.limits import Limits
from xds.protocol.resources.resource import Resource
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Node
from xds.server.ads import AdsServer
from xds.server.tls import TlsIdentity
from xds.stream_status import SyncState

TRUST_DOMAIN = TrustDomain("cluster.local")
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Translate = Callable[[ProxyPolicy], tuple[Resource, ...]]

NEVER_CUT_OFF: Final = 600
"""Seconds of a drain time that is longer than a file of tests takes.

At the end of the drain time Envoy closes connections that came by a filter chain of before, idle ones too. A
request that the caller's Envoy sends on one of them at this moment is answered 503 (flag UC). With a shorter
drain time the pace of the machine would decide whether a test meets that moment.
"""

_LOST = "gRPC config stream to "


class ByCommonName:
    """Authenticator that uses the common name of the verified client certificate as the node's name."""

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the common name."""
        assert peer.certificate is not None
        return NodeKey(read_peer(peer.certificate).common_name)

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Accept any."""


def _server(cache: SnapshotCache, identity: TlsIdentity) -> AdsServer:
    """Return a server that holds nodes without a group, for one second at a time."""

    def held(node: NodeKey) -> str:
        return "" if cache.snapshot(node) else HoldReason.WORKLOAD

    limits = Limits(unserved_seconds=1.0)
    return AdsServer(cache, ByCommonName(), lambda: identity, limits=limits, hold_reason=held)


@dataclass
class LiveMesh:
    """One running mesh; everything it started ends with its exit stack."""

    state: Path
    view: View
    authority: CertificateAuthority
    manager: CertificateManager
    ledger: Ledger
    cache: SnapshotCache
    server: AdsServer
    identity: TlsIdentity
    ads_port: int
    ends: AsyncExitStack
    translate: Translate = resources
    logs: dict[str, Path] = field(default_factory=dict)
    envoys: dict[str, RunningEnvoy] = field(default_factory=dict)
    nodes: dict[str, NodeKey] = field(default_factory=dict)
    loopback: IpAddress | None = None
    """Where a proxy in transparent interception shows its beacon: on a loopback of its own, if it has one."""
    _round: int = 0

    @classmethod
    async def start(cls, state: Path, manifests: str, ends: AsyncExitStack) -> Self:
        """Start an ADS server for these manifests."""
        now = datetime.now(UTC)
        authority = own_authority(state, TRUST_DOMAIN, now)
        shown = ads_server_certificate(authority, PairFiles(state), now)
        identity = TlsIdentity(shown.chain_pem, shown.key.reveal(), authority.trust_bundle())
        ledger = SqliteLedger.open(state / "ledger.db")
        ends.callback(ledger.close)
        cache = SnapshotCache()
        server = _server(cache, identity)
        # Not one that the system gives to anybody: a test may end this server, and start another there.
        port = await server.start(f"127.0.0.1:{free_port('127.0.0.1')}")
        ends.push_async_callback(server.stop, 1)
        manager = CertificateManager(authority, PairFiles(state), timedelta(hours=24), lambda: 0.0)
        mesh = cls(state, view_of(manifests), authority, manager, ledger, cache, server, identity, port, ends)
        mesh.apply(manifests)
        return mesh

    def workload(self, uuid: str) -> Workload:
        """Return the only workload with a UUID; UUIDs are unique in these meshes."""
        (key,) = (key for sidecar, (key, *_) in by_sidecar(self.view).items() if sidecar.uuid == uuid)
        return self.view.workloads[key]

    def apply(self, manifests: str, said: tuple[str, ...] = ()) -> None:
        """Publish the resources of these manifests, whose reader must report these codes."""
        self.publish(view_of(manifests, said))

    def publish(self, view: View) -> None:
        """Publish the resources of a view."""
        self.view = view
        self._round += 1
        now = datetime.now(UTC)
        snapshots: dict[GroupKey, Snapshot] = {}
        members: dict[NodeKey, GroupKey] = {}
        names = service_identities(self.view)
        for number, (key, proxies) in enumerate(groups(self.view).items()):
            policy = proxy_policy(self.view, key)
            certificate = self.manager.ensure(key.identity, names[key.identity], now)
            secret = service_certificate(certificate), trust_root(TRUST_DOMAIN, self.manager.trust_bundle())
            own = [edge_certificate(shown) for shown in edge_secrets(self.view, key)]
            own += map(client_authorities, edge_authorities(self.view, key))
            group = GroupKey(str(number))
            where = key.address or self.loopback
            shining = beacon(where, self._round) if where else ()
            snapshots[group] = Snapshot.of((*self.translate(policy), *secret, *own, *shining))
            assert snapshots[group].missing() == ()
            members |= {NodeKey(str(proxy)): group for proxy in proxies}
        self.cache.publish(snapshots, members)

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Stop the server while the block runs, and start another one on its port."""
        await self.server.stop(1)
        yield
        self.server = _server(self.cache, self.identity)
        await self.server.start(f"127.0.0.1:{self.ads_port}")
        self.ends.push_async_callback(self.server.stop, 1)
        await self.in_force()

    async def in_force(self) -> None:
        """Wait until every Envoy has the last published resources, without warming or interim ones."""
        for uuid in self.envoys:
            await until(lambda uuid=uuid: self._has_it(uuid))  # type: ignore[misc] # bound early

    async def complaints(self) -> str:
        """Return the Envoys' log lines, rejections and uses of deprecated fields.

        A lost stream is not included: while tests with other event loops run, this server cannot respond.
        """
        logged = [f"{uuid}: {text}" for uuid, log in self.logs.items() if (text := _complaints(log))]
        rejected = [uuid for uuid in self.envoys if await self.stat(uuid, "update_rejected")]
        outdated = [uuid for uuid in self.envoys if await self._outdated(uuid)]
        counted = (f"{uuid} rejected an update" for uuid in rejected)
        return "\n".join((*logged, *counted, *(f"{uuid} was sent deprecated fields" for uuid in outdated)))

    async def _outdated(self, uuid: str) -> bool:
        """Return whether an Envoy got deprecated fields other than the one that it logs each time."""
        used = await self.stat(uuid, "runtime.deprecated_feature_use")
        return used > self.logs[uuid].read_text().count(OF_OLDER_ENVOYS)

    async def _has_it(self, uuid: str) -> bool:
        envoy = self.envoys[uuid]
        if await envoy.round() != str(self._round) or self._awaits(uuid):
            return False
        lines = (await envoy.text("/stats?filter=warming")).splitlines()
        return bool(lines) and all(line.endswith(": 0") for line in lines)

    def _awaits(self, uuid: str) -> bool:
        """Return whether the server waits for an Envoy's answer, for example to an interim listener.

        An Envoy that has the round has got all resources before it. To see whether it still has an interim
        listener, the Envoy would have to print all listeners, which takes it longer than the rest of a wait.
        """
        own = (stream for stream in self.server.statuses() if stream.node_key == self.nodes[uuid])
        return any(status.state is SyncState.PENDING for stream in own for status in stream.types)

    async def envoy(
        self,
        uuid: str,
        protocol: AdsProtocol = AdsProtocol.DELTA,
        place: Place = HERE,
        drain_seconds: int = NEVER_CUT_OFF,
    ) -> None:
        """Start a workload's Envoy like the agent, and wait until it is live."""
        workload = self.workload(uuid)
        assert workload.proxy_name is not None
        folder = self.state / uuid
        folder.mkdir()
        settings = self._credentials(workload.proxy_name, folder, protocol)
        (folder / "bootstrap.json").write_text(bootstrap(settings))
        binding = isinstance(workload.interception, Explicit | Edge)
        session = await self.ends.enter_async_context(place.session())
        running = RunningEnvoy(folder, workload.address if binding else LOOPBACK, session)
        program = envoy_program()
        assert program is not None
        known = environment(os.environ, workload.proxy_name)
        keeping = await keep(program, running, place, drain_seconds, self.ends, known)
        self.logs[uuid] = running.log
        self.envoys[uuid], self.nodes[uuid] = running, NodeKey(str(workload.proxy_name))
        await until(lambda: self._live(running, keeping))

    def client(self, namespace: str, account: str) -> ssl.SSLContext:
        """Return a TLS client with an identity's service certificate, which trusts the mesh's root."""
        identity = next(item for item in by_identity(self.view) if str(item) == f"{namespace}/{account}")
        return self._context(identity)

    async def stat(self, uuid: str, name: str) -> int:
        """Return one of an Envoy's counters."""
        result = json.loads(await self.envoys[uuid].text(f"/stats?filter={name}&format=json"))["stats"]
        return sum(item["value"] for item in result if "value" in item)

    def _context(self, identity: ServiceIdentity) -> ssl.SSLContext:
        certificate = self.manager.get(identity)
        assert certificate is not None
        file = self.state / f"{identity.service_account}.pem"
        file.write_bytes(certificate.chain_pem + certificate.key.reveal())
        context = ssl.create_default_context(cadata=self.authority.trust_bundle().decode())
        context.check_hostname = False
        context.load_cert_chain(file)
        return context

    def _credentials(self, name: ProxyName, folder: Path, protocol: AdsProtocol) -> BootstrapSettings:
        proxy = issue_proxy(self.authority, self.ledger, name, timedelta(days=1), datetime.now(UTC))
        files = {
            "proxy.pem": proxy.chain_pem,
            "proxy.key": proxy.key.reveal(),
            "ca.pem": self.authority.trust_bundle(),
        }
        for file, content in files.items():
            (folder / file).write_bytes(content)
        return BootstrapSettings(
            proxy_name=name,
            trust_domain=TRUST_DOMAIN,
            ads=(HostPort("127.0.0.1", self.ads_port),),
            certificate_file=folder / "proxy.pem",
            key_file=folder / "proxy.key",
            ca_file=folder / "ca.pem",
            admin=HostPort("127.0.0.1", 0),
            protocol=protocol,
        )

    async def _live(self, running: RunningEnvoy, keeping: "asyncio.Task[EnvoyEnd]") -> bool:
        assert not keeping.done(), f"Envoy has ended: {keeping.result()}"
        return await running.live_epoch() == 0


def _complaints(log: Path) -> str:
    """Return the lines of a log, without those about the end of a stream."""
    lines = log.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if _LOST not in line and OF_OLDER_ENVOYS not in line)


OF_OLDER_ENVOYS: Final = "OpenTelemetryAccessLogConfig.common_config"
"""A field that newer Envoys warn of, and the oldest that are tried cannot do without."""


async def serve(
    ends: AsyncExitStack, address: str, port: int, handle: Serve, tls: ssl.SSLContext | None = None
) -> None:
    """Run an application at an address."""
    server = await asyncio.start_server(handle, address, port, ssl=tls)
    ends.push_async_callback(_close, server)


def view_of(manifests: str, said: tuple[str, ...] = ()) -> View:
    """Read manifests into a view; their reader must report exactly these codes."""
    read = Manifests().apply("mesh.yaml", manifests)
    assert tuple(str(problem.code) for problem in read.problems()) == said, read.problems()
    return View.build(read.objects(), MeshSettings(trust_domain=TRUST_DOMAIN))


async def _close(server: asyncio.Server) -> None:
    server.close()
    await asyncio.sleep(0)
