"""Tests of each driver with only its contract: it listens, answers probes, and ends on request."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.contract import Names, Usage
from certs.keys.material import ServiceCertificate
from certs.keys.pair import issue_pair
from meshwright.controller.driver_runner import DriverTasks
from meshwright.controller.observing.driver_probes import carry_out
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.contract.contexts import Clients, ControllerContext, DebugAnswer
from meshwright.sidecars.contract.driver import SidecarDriver
from meshwright.sidecars.contract.events import Broker
from meshwright.sidecars.contract.health import HealthProbes
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.snapshots import OwnSnapshots
from tests.tools.deadline import until
from tests.tools.own_authority import own_authority
from xds.cache import NodeKey, SnapshotCache
from xds.hooks import AnyNode, NoObserver, Peer
from xds.limits import Limits
from xds.server.tls import TlsIdentity
from xds.stream_status import StreamStatus

HOST = "127.0.0.1"
DRIVERS: tuple[SidecarDriver, ...] = (DocumentDriver(), EnvoyDriver())


class Pages:
    """Collector of a driver's additions to the debug server."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.statuses: list[Callable[[], tuple[StreamStatus, ...]]] = []

    def page(self, path: str, shows: str, answer: DebugAnswer) -> None:
        """Record the path."""
        self.paths.append(path)

    def streams(self, statuses: Callable[[], tuple[StreamStatus, ...]]) -> None:
        """Record the statuses."""
        self.statuses.append(statuses)


class Certificates:
    """A store without service certificates."""

    certificates: Mapping[ServiceIdentity, ServiceCertificate] = {}


class ByAddress(AnyNode):
    """Authenticates each connection as a node of its own."""

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the client's address."""
        return NodeKey(peer.address)


class Running:
    """A running driver and a client that waits at it."""

    def __init__(self, directory: Path, tasks: DriverTasks) -> None:
        self.authority = own_authority(directory, TrustDomain("cluster.local"), datetime.now(UTC))
        self.directory = directory
        self.tasks = tasks
        self.pages = Pages()

    def _identity(self, usage: Usage) -> TlsIdentity:
        names = Names("a.store.shop", dns_names=("localhost",) if usage is Usage.SERVER else ())
        pair = issue_pair(self.authority, usage, names, timedelta(hours=1), datetime.now(UTC))
        return TlsIdentity(pair.chain_pem, pair.key.reveal(), self.authority.trust_bundle())

    async def start(self, driver: SidecarDriver) -> HealthProbes:
        """Start the driver."""
        shown = self._identity(Usage.SERVER)
        return await driver.start(
            ControllerContext(
                host=HOST,
                port=0,
                server_certificate=lambda: shown,
                namespace="meshwright-system",
                kubernetes=None,
                config=MeshConfig,
                catalog=OwnSnapshots(SnapshotCache(), driver.types),
                certificates=Certificates(),
                clients=Clients(ByAddress(NodeKey("")), NoObserver(), Limits()),
                events=Broker(),
                debug=self.pages,
                lifetime=self.tasks.lifetime,
            )
        )

    @asynccontextmanager
    async def waiting(self, port: int) -> AsyncIterator[asyncio.StreamReader]:
        """Hold a connection.

        The document server also gets a request that waits, other servers get no request.
        """
        shown = self._identity(Usage.PROXY)
        file = self.directory / "client.pem"
        file.write_bytes(shown.key + shown.chain)
        context = ssl.create_default_context(cadata=shown.trust_bundle.decode())
        context.load_cert_chain(file)
        context.set_alpn_protocols(["h2", "http/1.1"])
        reader, writer = await asyncio.open_connection(HOST, port, ssl=context, server_hostname="localhost")
        if writer.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            before = len(self.pages.statuses[0]())
            writer.write(b"GET /v1/document?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await until(lambda: len(self.pages.statuses[0]()) > before)
        try:
            yield reader
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: str(driver.name))
@pytest.mark.parametrize("in_order", [True, False], ids=["stop", "cancel"])
async def test_driver_ends_on_stop_or_cancel_with_a_waiting_client(
    tmp_path: Path, driver: SidecarDriver, in_order: bool
) -> None:
    """The driver ends before the client's wait of a minute, without an error, and its port is free."""
    async with asyncio.TaskGroup() as group:
        tasks = DriverTasks(group, 1.0)
        running = Running(tmp_path, tasks)
        probes = await running.start(driver)
        for probe in (probes.startup, probes.readiness, probes.liveness):
            assert await carry_out(probe, HOST) == ""
        assert len(running.pages.statuses) == 1
        async with running.waiting(probes.readiness.port) as reader:
            await asyncio.wait_for(tasks.end(in_order=in_order), 30.0)
            with contextlib.suppress(OSError):
                await asyncio.wait_for(reader.read(), 30.0)
    assert "Connect" in await carry_out(probes.readiness, HOST)


async def test_waiting_readers_of_documents_are_answered_one_after_another(tmp_path: Path) -> None:
    """The first reader is answered and loses its connection; the second waits for its turn.

    Otherwise all readers would poll another server at the same moment.
    """
    async with asyncio.TaskGroup() as group:
        tasks = DriverTasks(group, 1.0, 7200.0)
        running = Running(tmp_path, tasks)
        port = (await running.start(DocumentDriver())).readiness.port
        async with running.waiting(port) as first, running.waiting(port) as second:
            ending = asyncio.create_task(tasks.end(in_order=True))
            answer = await asyncio.wait_for(first.read(), 30.0)
            assert answer.startswith(b"HTTP/1.1 404 ")
            assert b"\r\nConnection: close\r\n" in answer
            assert (ending.done(), second.at_eof(), len(running.pages.statuses[0]())) == (False, False, 2)
            tasks.lifetime.cancel()
            await asyncio.wait_for(ending, 30.0)
            with contextlib.suppress(OSError):
                await asyncio.wait_for(second.read(), 30.0)
