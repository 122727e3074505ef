"""Tests of hosts outside the mesh, from values, with a real Envoy that resolves their names."""

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
from tests.golden.policies import ROOTS, calling, external
from tests.golden.resource_receiver import push, start_receiver
from tests.golden.running_mesh import LiveMesh
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
    """Two external hosts: the client certificates that they saw, and the roots of the second."""

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
    """An Envoy and the hosts."""
    async with AsyncExitStack() as ends:
        state = tmp_path_factory.mktemp("external")
        live_mesh = await start_receiver(state, ends)
        yield live_mesh, await _hosts(ends, live_mesh, state)


async def called(mesh: LiveMesh, host: ExternalDestination, name: str = "api.example.org") -> tuple[int, str]:
    """Call a host through the proxy; return the status and text of the response."""
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
async def test_external_host_is_called_in_plain_text_by_name_and_address(
    mesh: tuple[LiveMesh, Outside], name: str, http: bool
) -> None:
    """HTTP requests and TCP connections arrive, with the requested host name."""
    envoys, hosts = mesh
    assert await called(envoys, external(name, hosts.plain, http=http)) == (200, "api.example.org")
    assert hosts.shown[-1] == (False, None)


async def test_external_host_is_called_over_tls_that_the_sidecar_originates(
    mesh: tuple[LiveMesh, Outside],
) -> None:
    """The host gets the server name, and no certificate of the mesh although it requests one."""
    envoys, hosts = mesh
    tls = TlsOrigination(HOST, hosts.roots)
    host = external(HOST, hosts.over_tls, http=True, tls=tls)
    assert await called(envoys, host) == (200, "api.example.org")
    assert hosts.shown[-1] == (True, None)


@pytest.mark.parametrize("wrong", ["name", "roots"])
async def test_server_without_proof_of_its_name_is_not_called(
    mesh: tuple[LiveMesh, Outside], wrong: str
) -> None:
    """A certificate with another name, or one that the roots did not sign, leads to 503.

    Nothing is sent to the server.
    """
    envoys, hosts = mesh
    tls = TlsOrigination(*(("other.example.org", hosts.roots) if wrong == "name" else (HOST, ROOTS)))
    before = len(hosts.shown)
    status, _ = await called(envoys, external(HOST, hosts.over_tls, http=True, tls=tls))
    assert (status, len(hosts.shown)) == (503, before)


async def test_envoy_has_no_complaints_about_external_hosts(mesh: tuple[LiveMesh, Outside]) -> None:
    """There was no rejection, no warning and no deprecated field in the tests above."""
    assert await mesh[0].complaints() == ""
