"""Tests of callers from outside the mesh, from values, with a real Envoy.

Networks are 127.x.y.z/32, because a client can choose its loopback address.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from catalog.oracle.callers import is_caller
from catalog.policy.values.inbound import EveryoneInTheMesh, OnlyRules
from catalog.policy.values.proxy import ProxyPolicy
from certs.contract import Names, Usage
from certs.keys.pair import issue_pair
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import IpAddress
from meshwright.mesh.policies.callers import AuthenticatedName, IpRange, Outsider
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.sidecars.layout import DIAGNOSIS_HEADER, OWN_ANSWER_HEADER
from tests.golden.policies import GATEWAY, rule
from tests.golden.running_mesh import TRUST_DOMAIN, LiveMesh, serve
from tests.meshes.resources import resources

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
]

NET = f"127.{100 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
SERVER, NEAR, FAR = f"{NET}.1", IpAddress(f"{NET}.11"), IpAddress(f"{NET}.12")
PORT = 8080
NAME = AuthenticatedName("gateway.example.org")
MESH = f"""
apiVersion: v1
kind: Service
metadata: {{name: shop, namespace: default}}
spec:
  selector: {{app: shop}}
  ports: [{{name: web, port: 80, targetPort: {PORT}, appProtocol: http}}]
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: shop, namespace: default, labels: {{app: shop}}}}
spec: {{address: {SERVER}, applicationAddress: {NET}.2, serviceAccount: shop, uuid: shop-uuid}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: alice, namespace: default}}
spec: {{address: {NET}.3, serviceAccount: alice, uuid: alice-uuid}}
"""
RULE = rule(GATEWAY, IpRange(f"{NEAR}/32"), NAME, matches=(HTTPMatch("books", "/books"),))


async def _application(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveMesh]:
    """A shop behind an Envoy."""
    async with AsyncExitStack() as ends:
        await serve(ends, f"{NET}.2", PORT, _application)
        live_mesh = await LiveMesh.start(tmp_path_factory.mktemp("outside"), MESH, ends)
        await live_mesh.envoy("shop-uuid")
        yield live_mesh


async def admitting(mesh: LiveMesh, access: OnlyRules | EveryoneInTheMesh) -> None:
    """Admit these callers at the shop's port, and wait until it is in force."""

    def policy(of: ProxyPolicy) -> ProxyPolicy:
        return replace(of, inbound=tuple(replace(port, access=access) for port in of.inbound))

    mesh.translate = lambda of: resources(policy(of))
    mesh.publish(mesh.view)
    await mesh.in_force()


async def asked(
    address: str, path: str, tls: ssl.SSLContext | None = None, header: str = "", told: bool = False
) -> int | None:
    """Return the status of a request from an address, or None if the connection is closed.

    All requests have the diagnosis header, but only a `told` caller may get the denial's reason and the
    answering sidecar.
    """
    try:
        reader, writer = await asyncio.open_connection(SERVER, PORT, local_addr=(address, 0), ssl=tls)
        header += f"{DIAGNOSIS_HEADER}: true\r\n"
        writer.write(f"GET {path} HTTP/1.1\r\nhost: shop\r\n{header}connection: close\r\n\r\n".encode())
        await writer.drain()
        status = await asyncio.wait_for(reader.readline(), 20)
        heads = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20) if status else b""
        assert (b"denied" not in heads and OWN_ANSWER_HEADER.encode() not in heads) or told
        writer.close()
    except (ConnectionError, ssl.SSLError):
        return None
    return int(status.split()[1]) if status else None


def gateway(mesh: LiveMesh, state: Path, name: str) -> ssl.SSLContext:
    """Return a TLS client with a certificate of the mesh's root for a name that is no identity."""
    now = datetime.now(UTC)
    pair = issue_pair(mesh.authority, Usage.SERVICE, Names(name, dns_names=(name,)), timedelta(hours=1), now)
    file = state / f"{name}.pem"
    file.write_bytes(pair.chain_pem + pair.key.reveal())
    context = ssl.create_default_context(cadata=mesh.authority.trust_bundle().decode())
    context.check_hostname = False
    context.load_cert_chain(file)
    return context


@pytest.mark.parametrize(
    ("address", "answer"), [(NEAR, (200, 403)), (FAR, (None, None))], ids=["near", "far"]
)
async def test_network_is_admitted_in_plain_text_by_its_rule(
    mesh: LiveMesh, address: IpAddress, answer: tuple[int | None, int | None]
) -> None:
    """The rule's matches apply. Connections from other addresses are refused, whatever a header contains."""
    await admitting(mesh, OnlyRules((RULE,)))
    assert (await asked(address, "/books"), await asked(address, "/other")) == answer
    assert await asked(address, "/books", header=f"x-forwarded-for: {NEAR}\r\n") == answer[0]
    admitted = is_caller(IpRange(f"{NEAR}/32"), Outsider(address), TRUST_DOMAIN)
    assert admitted == (answer[0] == 200)


async def test_forwarded_header_does_not_move_a_caller_to_another_network(mesh: LiveMesh) -> None:
    """With two networks under two rules, each caller has the rights of its own address."""
    far = rule(TRAFFIC_TARGET, IpRange(f"{FAR}/32"), matches=(HTTPMatch("toys", "/toys"),))
    await admitting(mesh, OnlyRules((RULE, far)))
    result = [await asked(FAR, path, header=f"x-forwarded-for: {NEAR}\r\n") for path in ("/books", "/toys")]
    assert result == [403, 200]


async def test_certificate_name_is_admitted_from_any_address(mesh: LiveMesh, tmp_path: Path) -> None:
    """A certificate of the same root for another name fails the handshake."""
    await admitting(mesh, OnlyRules((RULE,)))
    mine, other = gateway(mesh, tmp_path, NAME.name), gateway(mesh, tmp_path, "other.example.org")
    assert [await asked(FAR, path, mine) for path in ("/books", "/other")] == [200, 403]
    assert await asked(NEAR, "/books", other) is None


async def test_mesh_caller_is_judged_by_identity_from_any_address(mesh: LiveMesh) -> None:
    """A network's rule applies only to callers without a certificate."""
    await admitting(mesh, OnlyRules((RULE,)))
    assert await asked(NEAR, "/books", mesh.client("default", "alice"), told=True) == 403


async def test_permissive_mode_does_not_widen_the_rules_for_outsiders(mesh: LiveMesh, tmp_path: Path) -> None:
    """A certificate that a rule admits to the handshake does not make its holder a member of the mesh."""
    await admitting(mesh, EveryoneInTheMesh((RULE,)))
    alice, mine = mesh.client("default", "alice"), gateway(mesh, tmp_path, NAME.name)
    assert await asked(FAR, "/other", alice) == 200
    assert [await asked(FAR, path, mine) for path in ("/books", "/other")] == [200, 403]
    assert [await asked(NEAR, path) for path in ("/books", "/other")] == [200, 403]
    assert await asked(FAR, "/books") is None


async def test_envoy_has_no_complaints_about_outsiders(mesh: LiveMesh) -> None:
    """There was no rejection, no warning and no deprecated field in the tests above."""
    assert await mesh.complaints() == ""
