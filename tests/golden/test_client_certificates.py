"""Client certificates with a real Envoy: of the clients of a gateway, and of the gateway for its backends.

The backends have no sidecars. They answer with the header that names the client, or with the names in the
certificate of the gateway.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from tests.golden.running_mesh import LiveMesh, serve
from tests.tools.deadline import until
from tests.tools.tls_secrets import Authority, EdgePair, config_map, self_signed

pytestmark = [pytest.mark.envoy, pytest.mark.asyncio(loop_scope="module")]

NET: Final = f"127.{100 + os.getpid() % 100}.{100 + os.getpid() // 100 % 150}"
EDGE, WEB, SECURE = (f"{NET}.{number}" for number in (11, 12, 13))
APPLICATION, STRICT = 14001, 14002
DEFAULT, OTHER, INSECURE, OPEN, BROKEN, PLAIN, ENDED = range(14461, 14468)
"""Ports by validation: the default, another one, the insecure fallback, none, a broken one; HTTP; and TLS."""

FIRST, SECOND, THIRD = map(Authority, ("first", "second", "third"))
SERVER: Final = self_signed("shop.example")
ALICE: Final = FIRST.issue("alice.example", uris=("spiffe://clients/alice",))
BOB: Final = SECOND.issue("bob.example")
BACKEND: Final = THIRD.issue("secure.example")
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


def _strict(name: str, port: int) -> str:
    """Return a Service with TLS, and a route to it by a path."""
    return f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default}}
spec:
  selector: {{app: secure}}
  ports: [{{name: tls, port: {port}, appProtocol: https}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: {name}, namespace: default}}
spec:
  targetRefs: [{{group: "", kind: Service, name: {name}}}]
  validation: {{hostname: secure.example, caCertificateRefs: [{{group: "", kind: ConfigMap, name: third}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}, namespace: default}}
spec:
  parentRefs: [{{name: edge, sectionName: at-{PLAIN}}}]
  rules:
  - {{matches: [{{path: {{value: /{name}}}}}], backendRefs: [{{name: {name}, port: {port}}}]}}
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
metadata: {{name: secure, namespace: default, labels: {{app: secure}}}}
spec: {{address: {SECURE}, serviceAccount: secure}}
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
    backend: {{clientCertificateRef: {{name: client}}}}
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
{_strict("admits-first", APPLICATION)}
{_strict("admits-second", STRICT)}
{_route("HTTPRoute", DEFAULT, OTHER, INSECURE, OPEN, BROKEN, PLAIN)}
{_route("TLSRoute", ENDED)}
{SERVER.manifest("shop")}"""


def manifests(first: Authority = FIRST, shown: EdgePair = ALICE) -> str:
    """Return the mesh with its CA certificates, and the client certificate of the gateway."""
    bundles = {"first": first, "second": SECOND, "third": THIRD}
    authorities = (config_map(name, {"ca.crt": ca.pem}) for name, ca in bundles.items())
    return "---\n".join((MESH, *authorities, shown.manifest("client")))


async def _named(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests with their header that names the client, until the client ends."""
    try:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode():
            lines = [line.split(": ", 1) for line in head.splitlines()[1:] if line]
            body = "|".join(value for name, value in lines if name == "x-forwarded-client-cert").encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    except asyncio.IncompleteReadError:
        writer.close()


async def _seen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests with the DNS names in the certificate of the client."""
    certificate = writer.get_extra_info("ssl_object").getpeercert()
    names = " ".join(value for kind, value in certificate["subjectAltName"] if kind == "DNS").encode()
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(names) + names)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _demanding(folder: Path, authority: Authority) -> ssl.SSLContext:
    """Return the TLS of a server that demands a certificate of an authority."""
    file = folder / "server.pem"
    file.write_bytes(BACKEND.chain + BACKEND.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(file)
    return context


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveMesh]:
    """A gateway in front of one application in plain text, and one that demands certificates at two ports."""
    async with AsyncExitStack() as ends:
        folder = tmp_path_factory.mktemp("clients")
        await serve(ends, WEB, APPLICATION, _named)
        for port, authority in ((APPLICATION, FIRST), (STRICT, SECOND)):
            await serve(ends, SECURE, port, _seen, _demanding(folder, authority))
        live = await LiveMesh.start(folder, manifests(), ends)
        await live.envoy("edge-uuid")
        await live.in_force()
        yield live
        assert await live.complaints() == ""


async def request(
    mesh: LiveMesh, port: int, shown: EdgePair | None, more: str = "", path: str = "/"
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
        writer.write(f"GET {path} HTTP/1.1\r\nhost: shop.example\r\n{more}\r\n".encode())
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
    assert names == ['Subject=""', "URI=spiffe://clients/alice", "DNS=alice.example"]
    assert await request(mesh, INSECURE, MALLORY, FORGED) == (200, "")
    assert await request(mesh, OPEN, ALICE, FORGED) == (200, "")
    assert await request(mesh, PLAIN, None, FORGED) == (200, "")


async def test_replaced_authority_changes_no_listener(mesh: LiveMesh) -> None:
    """Clients of the old authority are refused from then on, and those of the new one admitted."""
    changed = "listener_manager.listener_modified", "listener_manager.listener_in_place_updated"
    before = [await mesh.stat("edge-uuid", name) for name in changed]
    carol = THIRD.issue("carol.example")
    mesh.apply(manifests(THIRD))

    async def is_replaced() -> bool:
        return [await request(mesh, DEFAULT, shown) is None for shown in (ALICE, carol)] == [True, False]

    await until(is_replaced)
    assert [await mesh.stat("edge-uuid", name) for name in changed] == before
    mesh.apply(manifests())
    await mesh.in_force()


async def test_backend_gets_the_client_certificate_of_the_gateway(mesh: LiveMesh) -> None:
    """GatewayTLSBackendClientCertificate; a backend that trusts another authority refuses the certificate."""
    assert await request(mesh, PLAIN, None, path="/admits-first") == (200, "alice.example")
    refused = await request(mesh, PLAIN, None, path="/admits-second")
    assert (refused and refused[0]) == 503
    mesh.apply(manifests(shown=BOB))

    async def is_replaced() -> bool:
        return await request(mesh, PLAIN, None, path="/admits-second") == (200, "bob.example")

    await until(is_replaced)
    mesh.apply(manifests())
    await mesh.in_force()
