"""A small mesh that really runs: our ADS server, real Envoys, applications in this process.

Interception is explicit, on loopback addresses of its own. Nothing here is faked between manifest and socket.
"""

import asyncio
import json
import os
import shutil
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import aiohttp

from catalog.groups import groups
from catalog.identities import service_identities
from catalog.policy import proxy_policy
from catalog.view import MeshSettings, View
from certs.authority import CertificateAuthority
from certs.ledger import Ledger
from certs.manager import CertificateManager
from certs.peer import read_peer
from certs.proxy import issue_proxy
from certs.server import ads_server_certificate
from mesh.identity import ProxyName, ServiceIdentity
from mesh.names import TrustDomain
from providers.manifests import Manifests
from sidecars.envoy.bootstrap import AdsProtocol, BootstrapSettings, bootstrap
from sidecars.envoy.secrets import secrets
from sidecars.envoy.translate import resources
from xds.access import Peer
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.server import AdsServer, TlsIdentity
from xds.snapshot import Snapshot
from xds.wire import Node

TRUST_DOMAIN = TrustDomain("cluster.local")
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def envoy_program() -> str | None:
    """Return Envoy itself: MESHWRIGHT_ENVOY, the clone's own, or PATH's; None where there is none."""
    local = Path(__file__).parents[2] / ".envoy" / "bin" / "envoy"
    return shutil.which(os.environ.get("MESHWRIGHT_ENVOY") or str(local)) or shutil.which("envoy")


class ByCommonName:
    """Takes the common name of the certificate that TLS verified for the node."""

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the common name."""
        assert peer.certificate is not None
        return NodeKey(read_peer(peer.certificate).common_name)

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Accept any."""


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
    ads_port: int
    ends: AsyncExitStack
    logs: dict[str, Path] = field(default_factory=dict)

    @classmethod
    async def start(cls, state: Path, manifests: str, ends: AsyncExitStack) -> Self:
        """Start an ADS server for these manifests."""
        now = datetime.now(UTC)
        authority = CertificateAuthority.open(state, TRUST_DOMAIN, now)
        shown = ads_server_certificate(authority, state, now)
        identity = TlsIdentity(shown.chain_pem, shown.key.reveal(), authority.trust_bundle())
        ledger = Ledger.open(state / "ledger.db")
        ends.callback(ledger.close)
        cache = SnapshotCache()
        server = AdsServer(cache, ByCommonName(), lambda: identity)
        port = await server.start("127.0.0.1:0")
        ends.push_async_callback(server.stop, 1)
        manager = CertificateManager(authority, state, timedelta(hours=24), lambda: 0.0)
        mesh = cls(state, _view(manifests), authority, manager, ledger, cache, server, port, ends)
        mesh.apply(manifests)
        return mesh

    def apply(self, manifests: str) -> None:
        """Publish what these manifests come to."""
        self.view = _view(manifests)
        now = datetime.now(UTC)
        snapshots: dict[GroupKey, Snapshot] = {}
        members: dict[NodeKey, GroupKey] = {}
        names = service_identities(self.view)
        for number, (key, uuids) in enumerate(groups(self.view).items()):
            policy = proxy_policy(self.view, key)
            certificate = self.manager.ensure(key.identity, names[key.identity], now)
            secret = secrets(certificate, self.manager.trust_bundle(), TRUST_DOMAIN)
            group = GroupKey(str(number))
            snapshots[group] = Snapshot.of((*resources(policy), *secret))
            assert snapshots[group].missing() == ()
            for uuid in uuids:
                name = self.view.workloads_by_uuid[uuid].proxy_name
                members[NodeKey(str(name))] = group
        self.cache.publish(snapshots, members)

    async def envoy(self, uuid: str, protocol: AdsProtocol = AdsProtocol.DELTA) -> None:
        """Start a workload's Envoy and wait until it is live."""
        name = next(each.proxy_name for key, each in self.view.workloads_by_uuid.items() if key == uuid)
        assert name is not None
        folder = self.state / uuid
        folder.mkdir()
        settings = self._credentials(name, folder, protocol)
        (folder / "bootstrap.json").write_text(bootstrap(settings))
        program = envoy_program()
        assert program is not None
        self.logs[uuid] = folder / "envoy.log"
        with (folder / "access.log").open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                program,
                *("--config-path", str(folder / "bootstrap.json"), "--concurrency", "1"),
                *("--disable-hot-restart", "--log-level", "warning", "--log-path", str(self.logs[uuid])),
                *("--admin-address-path", str(folder / "admin")),
                stdout=output,
                stderr=output,
            )
        self.ends.push_async_callback(_end, process)
        await until(lambda: self._live(folder))

    def client(self, namespace: str, account: str) -> ssl.SSLContext:
        """Return a TLS client with the service certificate of an identity, which trusts the mesh's root."""
        identity = next(
            each for each in self.view.workloads_by_identity if str(each) == f"{namespace}/{account}"
        )
        return self._context(identity)

    async def stat(self, uuid: str, name: str) -> int:
        """Return one of an Envoy's counters."""
        admin = (self.state / uuid / "admin").read_text()
        async with aiohttp.ClientSession() as session:
            answer = await session.get(f"http://{admin}/stats?filter={name}&format=json")
            found = json.loads(await answer.text())["stats"]
        return sum(each["value"] for each in found if "value" in each)

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
            ads_host="127.0.0.1",
            ads_port=self.ads_port,
            certificate_file=folder / "proxy.pem",
            key_file=folder / "proxy.key",
            ca_file=folder / "ca.pem",
            admin_port=0,
            protocol=protocol,
        )

    async def _live(self, folder: Path) -> bool:
        if not (folder / "admin").is_file():
            return False
        async with aiohttp.ClientSession() as session:
            answer = await session.get(f"http://{(folder / 'admin').read_text()}/ready")
            return answer.status == 200


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 20) -> None:
    """Wait until something holds, asking often; fail after a while."""
    async with asyncio.timeout(seconds):
        while not await holds():
            await asyncio.sleep(0.05)


async def serve(ends: AsyncExitStack, address: str, port: int, handle: Serve) -> None:
    """Run an application at an address."""
    server = await asyncio.start_server(handle, address, port)
    ends.push_async_callback(_close, server)


def _view(manifests: str) -> View:
    read = Manifests().apply("mesh.yaml", manifests)
    assert read.problems() == ()
    return View.build(read.objects(), read.inventory(), MeshSettings(trust_domain=TRUST_DOMAIN))


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


async def _close(server: asyncio.Server) -> None:
    server.close()
    await asyncio.sleep(0)
