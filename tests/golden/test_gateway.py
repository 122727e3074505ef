"""Tests of the gateway recipe of docs/policy/osm.md, exactly as written: nginx in front of a real Envoy.

nginx uses the certificate that a MeshConfig requests for it, in the form of its Secret.
"""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from certs.gateway import gateway_pair
from tests.golden.running_mesh import LiveMesh, serve, view_of
from tests.tools import nginx
from tests.tools.forked_cli import ROOT
from tests.tools.own_authority import own_authority

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(nginx.program() is None, reason="nginx is not installed: make system"),
]

NET: Final = f"127.{100 + os.getpid() % 100}.{100 + os.getpid() // 100 % 150}"
SERVER, GATEWAY, STRANGER, APPLICATION = f"{NET}.1", f"{NET}.11", f"{NET}.12", f"{NET}.2"
PORT: Final = 14001
LISTENS: Final = 8080
SHOP: Final = f"""
apiVersion: v1
kind: Service
metadata: {{name: bookstore, namespace: bookstore}}
spec:
  selector: {{app: bookstore}}
  ports: [{{name: web, port: {PORT}, appProtocol: http}}]
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: bookstore, namespace: bookstore, labels: {{app: bookstore}}}}
spec: {{address: {SERVER}, applicationAddress: {APPLICATION}, serviceAccount: bookstore, uuid: shop-uuid}}
"""


def _recipe() -> tuple[list[str], list[str]]:
    """Return the manifests and the nginx locations of the page, with the addresses of this test."""
    page = (ROOT / "docs" / "policy" / "osm.md").read_text("utf-8")
    before = page.partition("## IngressBackend")[2].partition("### A gateway")[0]
    section = page.partition("### A gateway")[2].partition("## What Open Service Mesh tried")[0]
    plain = re.findall("```yaml\n(.*?)```", before, re.DOTALL)
    result = [*plain, *re.findall("```yaml\n(.*?)```", section, re.DOTALL)]
    locations = re.findall("```nginx\n(.*?)```", section, re.DOTALL)
    here = [item.replace("192.0.2.7", GATEWAY).replace("10.0.0.5", SERVER) for item in (*result, *locations)]
    return here[: len(result)], here[len(result) :]


(PLAIN, PLACE, ENCRYPTED, CONFIG), (TO_PLAIN, TO_ENCRYPTED) = _recipe()


async def _application(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nbooks")
    await writer.drain()
    writer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveMesh]:
    """A bookstore behind an Envoy."""
    async with AsyncExitStack() as ends:
        await serve(ends, APPLICATION, PORT, _application)
        live_mesh = await LiveMesh.start(tmp_path_factory.mktemp("gateway"), _joined(SHOP), ends)
        await live_mesh.envoy("shop-uuid")
        yield live_mesh


@pytest.fixture
def folder(tmp_path: Path, mesh: LiveMesh) -> Iterator[Path]:
    """The mounted Secret of the page's MeshConfig."""
    wanted = view_of(CONFIG).config.ingress_gateway
    assert wanted is not None
    pair = gateway_pair(mesh.authority, wanted.dns_names, wanted.validity, datetime.now(UTC))
    (tmp_path / "tls.crt").write_bytes(pair.chain_pem)
    (tmp_path / "tls.key").write_bytes(pair.key.reveal())
    (tmp_path / "ca.crt").write_bytes(mesh.authority.trust_bundle())
    yield tmp_path
    shutil.rmtree(tmp_path)


def _joined(*manifests: str) -> str:
    return "\n---\n".join(manifests)


async def asked(folder: Path, locations: str, address: str = GATEWAY) -> tuple[str, str]:
    """Send a request through an nginx at an address; return the status line and nginx's log."""
    async with nginx.running(nginx.program() or "", folder, address, LISTENS, locations) as log:
        reader, writer = await asyncio.open_connection(address, LISTENS)
        writer.write(b"GET /books HTTP/1.1\r\nhost: shop.example.org\r\nconnection: close\r\n\r\n")
        result = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        return result.partition(b"\r\n")[0].decode(), log.read_text()


async def test_plain_text_gateway_is_admitted_from_its_own_address_only(mesh: LiveMesh, folder: Path) -> None:
    """A gateway at another address gets 502."""
    mesh.apply(_joined(SHOP, PLACE, PLAIN.replace("192.0.2.0/24", "192.0.2.7/32")))
    await mesh.in_force()
    assert (await asked(folder, TO_PLAIN))[0] == "HTTP/1.1 200 OK"
    assert (await asked(folder, TO_PLAIN, STRANGER))[0] == "HTTP/1.1 502 Bad Gateway"


@pytest.mark.parametrize("asks", ["", "proxy_ssl_server_name on;"], ids=["no name", "the service's name"])
async def test_gateway_with_its_certificate_is_admitted(mesh: LiveMesh, folder: Path, asks: str) -> None:
    """It is admitted with and without the TLS server name of the sidecar."""
    mesh.apply(_joined(SHOP, PLACE, ENCRYPTED))
    await mesh.in_force()
    assert (await asked(folder, asks + TO_ENCRYPTED))[0] == "HTTP/1.1 200 OK"
    assert (await asked(folder, asks + TO_ENCRYPTED, STRANGER))[0] != "HTTP/1.1 200 OK"


@pytest.mark.parametrize("lacks", ["a certificate", "its name", "the mesh's root", "the service's name"])
async def test_gateway_without_any_one_part_of_the_recipe_is_refused(
    mesh: LiveMesh, folder: Path, lacks: str
) -> None:
    """Without its certificate, its name, the mesh's root or the service's name, the connection is refused."""
    mesh.apply(_joined(SHOP, PLACE, ENCRYPTED))
    await mesh.in_force()
    locations, now = TO_ENCRYPTED, datetime.now(UTC)
    other = folder / "other"
    other.mkdir()
    stranger = own_authority(other, mesh.authority.trust_domain, now)
    match lacks:
        case "a certificate":
            locations = re.sub("proxy_ssl_certificate[_ ].*", "", locations)
        case "its name" | "the mesh's root":
            issuer = mesh.authority if lacks == "its name" else stranger
            names = ("other.example.org",) if lacks == "its name" else ("gateway.example.org",)
            pair = gateway_pair(issuer, names, mesh.manager.validity, now)
            (folder / "tls.crt").write_bytes(pair.chain_pem)
            (folder / "tls.key").write_bytes(pair.key.reveal())
        case _:
            locations = locations.replace("bookstore.bookstore.svc", "other.bookstore.svc")
    status, log = await asked(folder, locations)
    assert status != "HTTP/1.1 200 OK"
    assert ("upstream SSL certificate does not match" in log) == (lacks == "the service's name")


async def test_envoy_has_no_complaints_about_gateways(mesh: LiveMesh) -> None:
    """There was no rejection, no warning and no deprecated field in the tests above."""
    assert await mesh.complaints() == ""
