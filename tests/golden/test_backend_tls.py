"""BackendTLSPolicies in a real Envoy, with backends that speak TLS.

The backends have no sidecars, so the gateway's Envoy is the only one.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import h2.config
import h2.connection
import h2.events
import pytest
import pytest_asyncio

from tests.golden.running_mesh import LiveMesh
from tests.tools.deadline import until
from tests.tools.tls_secrets import Authority, config_map

pytestmark = [pytest.mark.envoy, pytest.mark.asyncio(loop_scope="module")]

NET: Final = f"127.{100 + os.getpid() % 100}.{100 + os.getpid() // 100 % 150}"
EDGE, SERVER = f"{NET}.1", f"{NET}.2"
HTTP, TCP, CLOSED = 14440, 14441, 14442
APPLICATION: Final = 14001
GOOD, OTHER = Authority("good"), Authority("other")
URI: Final = "spiffe://shop.example/web"
PAIR = GOOD.issue("web.example", "*.wide.example", uris=(URI,))

POLICIES: Final = {
    "right": "hostname: web.example",
    "host": "hostname: mismatch.example",
    "authority": "hostname: web.example",
    "missing": "hostname: web.example",
    "system": "hostname: web.example",
    "dns": "hostname: any.example, subjectAltNames: [{type: Hostname, hostname: web.example}]",
    "wrong-dns": "hostname: web.example, subjectAltNames: [{type: Hostname, hostname: a.example}]",
    "wildcard": "hostname: any.example, subjectAltNames: [{type: Hostname, hostname: '*.example'}]",
    "covered": "hostname: any.example, subjectAltNames: [{type: Hostname, hostname: a.wide.example}]",
    "uri": f"hostname: any.example, subjectAltNames: [{{type: URI, uri: '{URI}'}}]",
    "wrong-uri": f"hostname: web.example, subjectAltNames: [{{type: URI, uri: '{URI}/more'}}]",
    "one-of-two": (
        "hostname: any.example, subjectAltNames: "
        f"[{{type: Hostname, hostname: a.example}}, {{type: URI, uri: '{URI}'}}]"
    ),
    "grpc": "hostname: web.example",
    "changing": "hostname: web.example",
}
"""Checks by the name of a Service and its policy."""
AUTHORITIES: Final = {"authority": "other", "missing": "missing", "changing": "changing"}
"""ConfigMaps of policies, `good` by default."""


def _service(name: str) -> str:
    validation = POLICIES[name]
    authority = AUTHORITIES.get(name, "good")
    roots = f"caCertificateRefs: [{{group: '', kind: ConfigMap, name: {authority}}}]"
    roots = "wellKnownCACertificates: System" if name == "system" else roots
    protocol = "kubernetes.io/h2c" if name == "grpc" else "https"
    return f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default}}
spec:
  selector: {{app: web}}
  ports: [{{name: tls, port: {APPLICATION}, appProtocol: {protocol}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: {name}, namespace: default}}
spec:
  targetRefs: [{{group: "", kind: Service, name: {name}, sectionName: tls}}]
  validation: {{{validation}, {roots}}}
---"""


def _rule(name: str) -> str:
    match = f"{{path: {{value: /{name}}}}}"
    return f"  - {{matches: [{match}], backendRefs: [{{name: {name}, port: {APPLICATION}}}]}}\n"


def _tcp_route(name: str, backend: str) -> str:
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {{name: {name}, namespace: default}}
spec:
  parentRefs: [{{name: edge, sectionName: {name}}}]
  rules: [{{backendRefs: [{{name: {backend}, port: {APPLICATION}}}]}}]
---"""


MESH: Final = f"""
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: web, namespace: default, labels: {{app: web}}}}
spec: {{address: {SERVER}, serviceAccount: web}}
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
  listeners:
  - {{name: http, port: {HTTP}, protocol: HTTP}}
  - {{name: tcp, port: {TCP}, protocol: TCP}}
  - {{name: closed, port: {CLOSED}, protocol: TCP}}
---{"".join(map(_service, POLICIES))}{_tcp_route("tcp", "right")}{_tcp_route("closed", "missing")}
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: all, namespace: default}}
spec:
  parentRefs: [{{name: edge, sectionName: http}}]
  rules:
{"".join(map(_rule, POLICIES))}"""


def manifests(changing: Authority) -> str:
    """Return the mesh with its ConfigMaps."""
    bundles = {"good": GOOD, "other": OTHER, "changing": changing}
    return "---\n".join((MESH, *(config_map(name, {"ca.crt": ca.pem}) for name, ca in bundles.items())))


class _Server:
    """An application with TLS that answers with the requested server name and the version of HTTP."""

    def __init__(self, folder: Path) -> None:
        file = folder / "server.pem"
        file.write_bytes(PAIR.chain + PAIR.key)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(file)
        self.context.set_alpn_protocols(["h2", "http/1.1"])
        self.context.sni_callback = self._note
        self._names: dict[ssl.SSLObject, str] = {}

    def _note(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        self._names[connection] = str(name)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests without bodies until the client ends."""
        connection = writer.get_extra_info("ssl_object")
        name = self._names.pop(connection, "none")
        try:
            if connection.selected_alpn_protocol() == "h2":
                await _answer_http2(reader, writer, f"{name} h2")
                return
            while await reader.readuntil(b"\r\n\r\n"):
                body = f"{name} {connection.selected_alpn_protocol()}".encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def _answer_http2(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: str) -> None:
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    server.initiate_connection()
    writer.write(server.data_to_send())
    while data := await reader.read(65536):
        for event in server.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                server.send_headers(event.stream_id, [(":status", "200")])
                server.send_data(event.stream_id, body.encode(), end_stream=True)
        writer.write(server.data_to_send())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveMesh]:
    """A gateway in front of one application with TLS, under many Services."""
    async with AsyncExitStack() as ends:
        folder = tmp_path_factory.mktemp("backend-tls")
        application = _Server(folder)
        server = await asyncio.start_server(application.serve, SERVER, APPLICATION, ssl=application.context)
        ends.callback(server.close)
        live = await LiveMesh.start(folder, manifests(OTHER), ends)
        await live.envoy("edge-uuid")
        await live.in_force()
        yield live
        assert await live.complaints() == ""


async def call(path: str, port: int = HTTP) -> tuple[int, str]:
    """Send a request for a path; return status and body."""
    reader, writer = await asyncio.open_connection(EDGE, port)
    try:
        writer.write(f"GET /{path} HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        return int(head.split()[1]), body
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("right", "web.example http/1.1"),
        ("dns", "any.example http/1.1"),
        ("wildcard", "any.example http/1.1"),
        ("covered", "any.example http/1.1"),
        ("uri", "any.example http/1.1"),
        ("one-of-two", "any.example http/1.1"),
        ("grpc", "web.example h2"),
    ],
)
async def test_verified_backend_answers(mesh: LiveMesh, service: str, expected: str) -> None:
    """The host name of the policy is requested in TLS, and the version of HTTP by ALPN."""
    status, body = await call(service)
    # The chunked body of HTTP/2 has its length before it.
    assert (status, expected in body) == (200, True)


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        ("host", "fail_verify_san"),
        ("authority", "fail_verify_error"),
        ("system", "fail_verify_error"),
        ("wrong-dns", "fail_verify_san"),
        ("wrong-uri", "fail_verify_san"),
    ],
)
async def test_backend_that_cannot_be_verified_gets_no_request(
    mesh: LiveMesh, service: str, reason: str
) -> None:
    """Another name, another CA, and a CA that the system does not have."""
    assert (await call(service))[0] == 503
    assert await mesh.stat("edge-uuid", f"default/{service}.ssl.{reason}") > 0


async def test_policy_without_certificates_lets_requests_fail(mesh: LiveMesh) -> None:
    """Nothing is sent to the backend, and connections are closed."""
    assert await call("missing") == (500, "")
    reader, writer = await asyncio.open_connection(EDGE, CLOSED)
    assert await reader.read() == b""
    writer.close()


async def test_connections_of_tcp_get_tls_too(mesh: LiveMesh) -> None:
    """No protocol is requested by ALPN, because the gateway does not look into the connection."""
    reader, writer = await asyncio.open_connection(EDGE, TCP)
    writer.write(b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n")
    answer = await reader.readuntil(b"web.example None")
    assert answer.startswith(b"HTTP/1.1 200")
    writer.close()


async def test_changed_certificates_take_effect(mesh: LiveMesh) -> None:
    """BackendTLSPolicy: a ConfigMap that gets the right CA, and loses it again."""
    assert (await call("changing"))[0] == 503
    for authority, status in ((GOOD, 200), (OTHER, 503)):
        mesh.apply(manifests(authority))

        async def has_changed(wanted: int = status) -> bool:
            return (await call("changing"))[0] == wanted

        await until(has_changed)
