"""Hosts outside the mesh, called by values: through a real Envoy, by a name that it asks of the resolver."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from catalog.policy.values.destinations import ExternalDestination, TlsOrigination
from certs.contract import Names, Usage
from certs.keys.pair import issue_pair
from meshwright.mesh.names import Port
from meshwright.sidecars.envoy.security.secrets import service_certificate, trust_root
from tests.golden.live import LiveMesh
from tests.golden.policies import ROOTS, calling, external
from tests.golden.pushing import push, start_receiver
from tests.meshes.resources import resources
from tests.tools.deadline import until
from tools.ports import free_port
from xds.protocol.resources.snapshot import Snapshot

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
]

HOST = "localhost"


@dataclass
class Outside:
    """Two hosts that are no mesh's: what they were shown of callers' certificates; roots of the second."""

    plain: Port
    over_tls: Port
    roots: str
    shown: list[tuple[bool, object]]


async def _hosts(ends: AsyncExitStack, mesh: LiveMesh, state: Path) -> Outside:
    now = datetime.now(UTC)
    pair = issue_pair(mesh.authority, Usage.SERVER, Names(HOST, dns_names=(HOST,)), timedelta(hours=1), now)
    (state / "host.pem").write_bytes(pair.chain_pem + pair.key.reveal())
    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cadata=mesh.authority.trust_bundle().decode()
    )
    context.load_cert_chain(state / "host.pem")
    context.verify_mode = ssl.CERT_OPTIONAL
    ports = Port(free_port("127.0.0.1")), Port(free_port("127.0.0.1"))
    outside = Outside(*ports, mesh.authority.trust_bundle().decode(), [])

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        over_tls = writer.get_extra_info("ssl_object") is not None
        outside.shown.append((over_tls, writer.get_extra_info("peercert")))
        (host,) = (line.partition(":")[2].strip() for line in asked.splitlines() if line.startswith("host:"))
        body = host.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    for port, tls in zip(ports, (None, context), strict=True):
        server = await asyncio.start_server(answer, "127.0.0.1", port, ssl=tls)
        ends.callback(server.close)
    return outside


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[LiveMesh, Outside]]:
    """An Envoy, and the hosts."""
    async with AsyncExitStack() as ends:
        state = tmp_path_factory.mktemp("external")
        live_mesh = await start_receiver(state, ends)
        yield live_mesh, await _hosts(ends, live_mesh, state)


async def called(mesh: LiveMesh, host: ExternalDestination, name: str = "api.example.org") -> tuple[int, str]:
    """Have a proxy call a host, and return the status and text of its answer."""
    policy = calling(host)
    now = datetime.now(UTC)
    certificate = mesh.manager.ensure(policy.identity, ("shop.golden",), now)
    root = trust_root(policy.trust_domain, mesh.manager.trust_bundle())
    issued = (service_certificate(certificate), root)
    assert await push(mesh, Snapshot.of((*resources(policy), *issued))) == {}
    where = policy.outbound[0].listen[0]

    async def listens() -> bool:
        return str(where) in await mesh.envoys["u"].text("/listeners")

    await until(listens)
    reader, writer = await asyncio.open_connection(where.address, where.port)
    writer.write(f"GET / HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n".encode())
    head, _, body = (await asyncio.wait_for(reader.read(), 30)).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


@pytest.mark.parametrize("http", [True, False])
@pytest.mark.parametrize("name", [HOST, "127.0.0.1"])
async def test_a_host_is_called_in_plain_text(mesh: tuple[LiveMesh, Outside], name: str, http: bool) -> None:
    """By a name and by an address, as requests or as a connection; it gets the name that was asked for."""
    envoys, hosts = mesh
    assert await called(envoys, external(name, hosts.plain, http=http)) == (200, "api.example.org")
    assert hosts.shown[-1] == (False, None)


async def test_a_host_is_called_over_tls_which_the_application_does_not_speak(
    mesh: tuple[LiveMesh, Outside],
) -> None:
    """The host is told which name is wanted, and shown no certificate of the mesh, though it asks for one."""
    envoys, hosts = mesh
    tls = TlsOrigination(HOST, hosts.roots)
    host = external(HOST, hosts.over_tls, http=True, tls=tls)
    assert await called(envoys, host) == (200, "api.example.org")
    assert hosts.shown[-1] == (True, None)


@pytest.mark.parametrize("wrong", ["name", "roots"])
async def test_who_cannot_prove_that_it_is_the_host_is_not_called(
    mesh: tuple[LiveMesh, Outside], wrong: str
) -> None:
    """Another name than its certificate's, or roots that do not vouch for it: 503, and nothing was sent."""
    envoys, hosts = mesh
    tls = TlsOrigination(*(("other.example.org", hosts.roots) if wrong == "name" else (HOST, ROOTS)))
    before = len(hosts.shown)
    status, _ = await called(envoys, external(HOST, hosts.over_tls, http=True, tls=tls))
    assert (status, len(hosts.shown)) == (503, before)


async def test_envoy_complains_of_nothing(mesh: tuple[LiveMesh, Outside]) -> None:
    """Of all the above: no rejection, no warning, no deprecated field."""
    assert await mesh[0].complaints() == ""
