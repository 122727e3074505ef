"""Gateways that validate the certificates of their clients, with a real Envoy and real connections.

The backend has no sidecar. It answers with the header that names the client.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final

import pytest
import pytest_asyncio
from cryptography import x509

from tests.golden.running_mesh import LiveMesh, serve
from tests.tools.client_authority import ClientAuthority
from tests.tools.deadline import until
from tests.tools.tls_secrets import EdgePair, config_map, self_signed

pytestmark = [pytest.mark.envoy, pytest.mark.asyncio(loop_scope="module")]

NET: Final = f"127.{100 + os.getpid() % 100}.{100 + os.getpid() // 100 % 150}"
EDGE, WEB = f"{NET}.11", f"{NET}.12"
APPLICATION: Final = 14001
DEFAULT, OTHER, INSECURE, OPEN, BROKEN, PLAIN, ENDED = range(14461, 14468)
"""Ports by validation: the default, another one, the insecure fallback, none, a broken one; HTTP; and TLS."""

FIRST, SECOND, THIRD = (ClientAuthority.new(name) for name in ("first", "second", "third"))
SERVER: Final = self_signed("shop.example")
ALICE: Final = FIRST.client(
    "alice", x509.UniformResourceIdentifier("spiffe://clients/alice"), x509.DNSName("alice.example")
)
BOB: Final = SECOND.client("bob")
MALLORY: Final = self_signed("mallory.example")
FORGED: Final = "x-forwarded-client-cert: Hash=0;URI=spiffe://clients/admin\r\n"


def _listener(port: int, protocol: str) -> str:
    tls = "" if protocol == "HTTP" else ", tls: {certificateRefs: [{name: shop}]}"
    return f"  - {{name: at-{port}, port: {port}, protocol: {protocol}{tls}}}\n"


def _validation(name: str, mode: str = "AllowValidOnly") -> str:
    references = f"caCertificateRefs: [{{group: '', kind: ConfigMap, name: {name}}}]"
    return f"{{validation: {{mode: {mode}, {references}}}}}"


def _route(kind: str, *ports: int) -> str:
    parents = ", ".join(f"{{name: edge, sectionName: at-{port}}}" for port in ports)
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata: {{name: web, namespace: default}}
spec:
  {"hostnames: [shop.example]" if kind == "TLSRoute" else ""}
  parentRefs: [{parents}]
  rules: [{{backendRefs: [{{name: web, port: {APPLICATION}}}]}}]
---"""


MESH: Final = f"""
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: default}}
spec:
  selector: {{app: web}}
  ports: [{{name: web, port: {APPLICATION}, appProtocol: http}}]
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: web, namespace: default, labels: {{app: web}}}}
spec: {{address: {WEB}, serviceAccount: web}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: edge, namespace: default}}
spec: {{address: {EDGE}, serviceAccount: edge, uuid: edge-uuid, gateway: edge}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: meshwright}}
spec: {{controllerName: meshwright.dev/gateway-controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: edge, namespace: default}}
spec:
  gatewayClassName: meshwright
  tls:
    frontend:
      default: {_validation("first")}
      perPort:
      - {{port: {OTHER}, tls: {_validation("second")}}}
      - {{port: {INSECURE}, tls: {_validation("first", "AllowInsecureFallback")}}}
      - {{port: {OPEN}, tls: {{}}}}
      - {{port: {BROKEN}, tls: {_validation("missing")}}}
  listeners:
{"".join(_listener(port, "HTTPS") for port in (DEFAULT, OTHER, INSECURE, OPEN, BROKEN))}\
{_listener(PLAIN, "HTTP")}\
{_listener(ENDED, "TLS")}\
---
{_route("HTTPRoute", DEFAULT, OTHER, INSECURE, OPEN, BROKEN, PLAIN)}
{_route("TLSRoute", ENDED)}
{SERVER.manifest("shop")}"""


def manifests(first: ClientAuthority = FIRST) -> str:
    """Return the mesh with its CA certificates."""
    authorities = (
        config_map(name, {"ca.crt": ca.pem}) for name, ca in (("first", first), ("second", SECOND))
    )
    return "---\n".join((MESH, *authorities))


async def _named(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests with their header that names the client, until the client ends."""
    try:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode():
            lines = [line.split(": ", 1) for line in head.splitlines()[1:] if line]
            body = "|".join(value for name, value in lines if name == "x-forwarded-client-cert").encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    except asyncio.IncompleteReadError:
        writer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveMesh]:
    """A gateway in front of one application."""
    async with AsyncExitStack() as ends:
        await serve(ends, WEB, APPLICATION, _named)
        live = await LiveMesh.start(tmp_path_factory.mktemp("clients"), manifests(), ends)
        await live.envoy("edge-uuid")
        await live.in_force()
        yield live
        assert await live.complaints() == ""


async def request(
    mesh: LiveMesh, port: int, shown: EdgePair | None, more: str = ""
) -> tuple[int, str] | None:
    """Send a request with a client certificate; return status and body, None for a refused connection."""
    context = ssl.create_default_context(cadata=SERVER.chain.decode())
    if shown is not None:
        file = mesh.state / "client.pem"
        file.write_bytes(shown.chain + shown.key)
        context.load_cert_chain(file)
    tls = None if port == PLAIN else context
    try:
        reader, writer = await asyncio.open_connection(
            EDGE, port, ssl=tls, server_hostname="shop.example" if tls else None
        )
        writer.write(f"GET / HTTP/1.1\r\nhost: shop.example\r\n{more}\r\n".encode())
        # With TLS 1.3 a client learns only from its first read that the server refused the certificate.
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line[16:]) for line in head.lower().splitlines() if line[:15] == "content-length:")
        body = (await reader.readexactly(length)).decode()
    except (OSError, asyncio.IncompleteReadError):
        return None
    writer.close()
    return int(head.split()[1]), body


async def statuses(mesh: LiveMesh, port: int) -> list[int | None]:
    """Return the statuses for a client of the first authority, of the second, of neither, and without one."""
    answers = [await request(mesh, port, shown) for shown in (ALICE, BOB, MALLORY, None)]
    return [None if answer is None else answer[0] for answer in answers]


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        (DEFAULT, [200, None, None, None]),
        (OTHER, [None, 200, None, None]),
        (ENDED, [200, None, None, None]),
        (INSECURE, [200, 200, 200, 200]),
        (OPEN, [200, 200, 200, 200]),
        (BROKEN, [None, None, None, None]),
    ],
    ids=["default", "per port", "TLS", "insecure fallback", "no validation", "missing CA certificates"],
)
async def test_clients_are_admitted_by_their_certificates(
    mesh: LiveMesh, port: int, expected: list[int | None]
) -> None:
    """GatewayFrontendClientCertificateValidation, its insecure fallback, and an invalid configuration."""
    assert await statuses(mesh, port) == expected


async def test_backend_gets_the_names_of_a_validated_client_alone(mesh: LiveMesh) -> None:
    """A forged header of a client never reaches a backend."""
    answer = await request(mesh, DEFAULT, ALICE, FORGED)
    assert answer is not None
    _, *names = answer[1].split(";")
    assert names == ['Subject="CN=alice"', "URI=spiffe://clients/alice", "DNS=alice.example"]
    assert await request(mesh, INSECURE, MALLORY, FORGED) == (200, "")
    assert await request(mesh, OPEN, ALICE, FORGED) == (200, "")
    assert await request(mesh, PLAIN, None, FORGED) == (200, "")


async def test_replaced_authority_changes_no_listener(mesh: LiveMesh) -> None:
    """Clients of the old authority are refused from then on, and those of the new one admitted."""
    changed = "listener_manager.listener_modified", "listener_manager.listener_in_place_updated"
    before = [await mesh.stat("edge-uuid", name) for name in changed]
    carol = THIRD.client("carol")
    mesh.apply(manifests(THIRD))

    async def is_replaced() -> bool:
        return [await request(mesh, DEFAULT, shown) is None for shown in (ALICE, carol)] == [True, False]

    await until(is_replaced)
    assert [await mesh.stat("edge-uuid", name) for name in changed] == before
    mesh.apply(manifests())
    await mesh.in_force()
