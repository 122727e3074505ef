"""Tests of MutualTLS with a real Envoy, compared with the oracle for each mode.

Callers in plain text have no sidecar, and call from chosen loopback addresses. Some claim to be another
caller.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Final

import pytest
import pytest_asyncio

from catalog.oracle.decide import Request, decide
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.policies.callers import Outsider
from meshwright.mesh.service import ServiceKey
from tests.golden.running_mesh import NEVER_CUT_OFF, LiveMesh, serve

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
]

NET: Final = f"127.{100 + os.getpid() % 100}.{100 + os.getpid() // 100 % 150}"
SERVER, APPLICATION, CALLER, NEAR, FAR, GATEWAY = (f"{NET}.{item}" for item in (1, 2, 3, 11, 12, 13))
HTTP, TCP, FIRST = 8080, 9000, 9001
SHOP: Final = ServiceKey(Namespace("default"), ServiceName("shop"))
MESH: Final = f"""
apiVersion: v1
kind: Service
metadata: {{name: shop, namespace: default}}
spec:
  selector: {{app: shop}}
  ports:
  - {{name: web, port: {HTTP}, appProtocol: http}}
  - {{name: lines, port: {TCP}, appProtocol: tcp}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: shop, namespace: default, labels: {{app: shop}}}}
spec: {{address: {SERVER}, applicationAddress: {APPLICATION}, serviceAccount: shop, uuid: shop-uuid}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: alice, namespace: default}}
spec:
  address: {CALLER}
  serviceAccount: alice
  uuid: alice-uuid
  upstreams:
  - {{service: shop.default, port: {HTTP}, address: {CALLER}, localPort: {HTTP}}}
  - {{service: shop.default, port: {TCP}, address: {CALLER}, localPort: {TCP}}}
---
apiVersion: v1
kind: Service
metadata: {{name: gateway, namespace: old}}
spec: {{ports: [{{name: web, port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: gateway-1, namespace: old, labels: {{kubernetes.io/service-name: gateway}}}}
addressType: IPv4
endpoints: [{{addresses: ["{GATEWAY}"]}}]
ports: [{{name: web, port: 8000}}]
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {{name: books, namespace: default}}
spec: {{matches: [{{name: books, pathRegex: /books, methods: [GET]}}]}}
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: TCPRoute
metadata: {{name: lines, namespace: default}}
spec: {{matches: {{ports: [{HTTP}, {TCP}]}}}}
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {{name: alice, namespace: default}}
spec:
  destination: {{kind: ServiceAccount, name: shop, namespace: default}}
  sources: [{{kind: ServiceAccount, name: alice, namespace: default}}]
  rules: [{{kind: TCPRoute, name: lines}}]
"""
OPEN: Final = """
---
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshConfig
metadata: {name: osm-mesh-config, namespace: osm-system}
spec: {traffic: {enablePermissiveTrafficPolicyMode: true}}
"""
BOOKS: Final = "matches: [{kind: HTTPRouteGroup, name: books}]"
RANGE: Final = f"sources: [{{kind: IPRange, name: {NEAR}/32}}]"
SERVICE: Final = "sources: [{kind: Service, name: gateway, namespace: old}]"


def mutual_tls(spec: str, name: str = "m") -> str:
    """Return a MutualTLS."""
    return f"""
---
apiVersion: policy.meshwright.dev/v1alpha1
kind: MutualTLS
metadata: {{name: {name}, namespace: default}}
spec: {{{spec}}}
"""


STRICT: Final = mutual_tls("mode: Strict")
EVERYBODY: Final = mutual_tls("mode: Permissive, plaintext: {}")
CASES: Final = {
    "nothing": "",
    "strict": STRICT,
    "permissive": mutual_tls("mode: Permissive"),
    "everybody": EVERYBODY,
    "a range": mutual_tls(f"mode: Permissive, plaintext: {{{RANGE}}}"),
    "a Service": mutual_tls(f"mode: Permissive, plaintext: {{{SERVICE}}}"),
    "some requests": mutual_tls(f"mode: Permissive, plaintext: {{{BOOKS}}}"),
    "some requests of a range": mutual_tls(f"mode: Permissive, plaintext: {{{RANGE}, {BOOKS}}}"),
    "one port": mutual_tls(f"mode: Permissive, ports: [{TCP}], plaintext: {{}}"),
    "strict but for one port": STRICT
    + mutual_tls(f"mode: Permissive, ports: [{HTTP}], plaintext: {{}}", "p"),
    "open but for an account": EVERYBODY + mutual_tls("mode: Strict, serviceAccounts: [shop]", "z"),
    "strict but for an account": STRICT
    + mutual_tls("mode: Permissive, serviceAccounts: [shop], plaintext: {}", "z"),
    "the first by name": mutual_tls("mode: Strict", "a") + EVERYBODY,
    "another account": mutual_tls("mode: Permissive, serviceAccounts: [alice], plaintext: {}"),
}
SECOND: Final = (
    b"\x0d\x0a\x0d\x0a\x00\x0d\x0aQUIT\x0a\x21\x11\x00\x0c\x7f\x00\x00\x01\x7f\x00\x00\x01\x9c\x40\x1f\x90"
)
"""The second version of the PROXY protocol, which says that 127.0.0.1 calls."""
PRETENDING: Final = (
    "x-forwarded-client-cert: By=spiffe://cluster.local/default/shop;URI=spiffe://cluster.local/default/alice\r\n"
    f"x-forwarded-for: {NEAR}\r\nforwarded: for={NEAR}\r\n"
)


async def _web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
    writer.close()


async def _lines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line)
        await writer.drain()
    writer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[LiveMesh]:
    """A shop behind an Envoy, and a caller of the mesh with its own.

    The parameter is the drain time of both Envoys in seconds. Only a test that waits for the end of the drain
    time uses a short one, because the shop's Envoy then closes idle connections of the caller's Envoy, and a
    request sent at that moment is answered with 503 (flag UC).
    """
    drain_seconds = getattr(request, "param", NEVER_CUT_OFF)
    async with AsyncExitStack() as ends:
        await serve(ends, APPLICATION, HTTP, _web)
        await serve(ends, APPLICATION, TCP, _lines)
        live_mesh = await LiveMesh.start(tmp_path_factory.mktemp("mutual-tls"), MESH, ends)
        await live_mesh.envoy("shop-uuid", drain_seconds=drain_seconds)
        await live_mesh.envoy("alice-uuid", drain_seconds=drain_seconds)
        yield live_mesh


OPENED: Final[list["Line"]] = []


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    """Close the connections of a test."""
    yield
    while OPENED:
        OPENED.pop().close()


class Line:
    """A connection that is kept open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int, by: str = NEAR, to: str = SERVER) -> "Line":
        """Connect from an address."""
        line = cls(*await asyncio.open_connection(to, port, local_addr=(by, 0)))
        OPENED.append(line)
        return line

    async def says(self, sent: bytes, until: bytes) -> bytes:
        """Send bytes and return the response, or empty bytes if the connection has ended."""
        try:
            async with asyncio.timeout(20):
                self._writer.write(sent)
                return await self._reader.readuntil(until)
        except (ConnectionError, asyncio.IncompleteReadError):
            return b""

    async def status(self, path: str = "/", header: str = "") -> int | None:
        """Return the status of a request, or None if the connection is closed."""
        sent = f"GET {path} HTTP/1.1\r\nhost: shop\r\n{header}\r\n".encode()
        head = await self.says(sent, b"\r\n\r\n")
        if b"content-length: 19" in head:
            await self._reader.readexactly(19)  # Envoy's "RBAC: access denied"
        return int(head.split()[1]) if head else None

    async def echoes(self) -> bool:
        """Return whether a line is echoed."""
        return await self.says(b"hello\n", b"\n") == b"hello\n"

    async def ended(self) -> None:
        """Wait until the server ends the connection."""
        with contextlib.suppress(ConnectionError):
            assert await self._reader.read() == b""

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


async def put(mesh: LiveMesh, policy: str) -> None:
    """Enforce a policy."""
    mesh.apply(MESH + policy)
    await mesh.in_force()


@pytest.mark.parametrize("everybody", [False, True], ids=["policy", "permissive"])
@pytest.mark.parametrize("case", CASES)
async def test_envoy_and_oracle_admit_the_same_plain_text_callers(
    mesh: LiveMesh, case: str, everybody: bool
) -> None:
    """Callers from every address are tried, with their own and with forged headers.

    The mesh's own caller is always admitted.
    """
    await put(mesh, CASES[case] + (OPEN if everybody else ""))
    differing = []
    for address in (NEAR, FAR, GATEWAY):
        client = Outsider(IpAddress(address))
        for path in ("/books", "/other"):
            for header in ("", PRETENDING):
                line = await Line.open(HTTP, address)
                allowed = decide(mesh.view, Request(client, SHOP, Port(HTTP), path=path)).allowed
                if (await line.status(path, header) == 200) != allowed:
                    differing.append(f"{address} {path} {header}")
                line.close()
        line = await Line.open(TCP, address)
        if await line.echoes() != decide(mesh.view, Request(client, SHOP, Port(TCP))).allowed:
            differing.append(f"{address} TCP")
        line.close()
    assert differing == []
    assert await (await Line.open(HTTP, CALLER, CALLER)).status() == 200
    assert await (await Line.open(TCP, CALLER, CALLER)).echoes()


async def test_oracle_admits_some_callers_and_refuses_others(mesh: LiveMesh) -> None:
    """This is the control of the comparison above, which would also hold if all were refused."""
    await put(mesh, CASES["some requests of a range"])
    near, far = (Outsider(IpAddress(item)) for item in (NEAR, FAR))
    asked = [(outsider, path) for outsider in (near, far) for path in ("/books", "/other")]
    result = [decide(mesh.view, Request(who, SHOP, Port(HTTP), path=path)).allowed for who, path in asked]
    assert result == [True, False, False, False]


@pytest.mark.parametrize(
    "sent",
    [
        f"PROXY TCP4 {NEAR} {SERVER} 40000 {HTTP}\r\nGET /books HTTP/1.1\r\nhost: shop\r\n\r\n".encode(),
        SECOND + b"GET /books HTTP/1.1\r\nhost: shop\r\n\r\n",
    ],
    ids=["PROXY protocol", "PROXY protocol 2"],
)
async def test_proxy_protocol_header_does_not_change_the_callers_address(mesh: LiveMesh, sent: bytes) -> None:
    """Only NEAR is admitted, and FAR sends NEAR's address."""
    await put(mesh, CASES["a range"])
    line = await Line.open(HTTP, FAR)
    assert b" 200 " not in await line.says(sent, b"\r\n\r\n")


async def test_http_2_without_tls_is_subject_to_the_same_rules(mesh: LiveMesh) -> None:
    """An admitted caller gets HTTP/2 settings, and another one gets no byte."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    await put(mesh, CASES["a range"])
    near, far = await Line.open(HTTP, NEAR), await Line.open(HTTP, FAR)
    assert await near.says(preface, b"\x04") != b""
    assert await far.says(preface, b"\x04") == b""


@pytest.mark.parametrize("mesh", [1], indirect=True, ids=["cut off after 1 s"])
async def test_strict_mode_ends_plain_text_connections_only(mesh: LiveMesh) -> None:
    """Open plain-text connections get 403 at once and end after draining.

    The mesh's own connections lose no request.
    """
    await put(mesh, EVERYBODY)
    plain, plain_tcp = await Line.open(HTTP), await Line.open(TCP)
    own, own_tcp = await Line.open(HTTP, CALLER, CALLER), await Line.open(TCP, CALLER, CALLER)
    assert [await line.status() for line in (plain, own)] == [200, 200]
    assert [await line.echoes() for line in (plain_tcp, own_tcp)] == [True, True]
    statuses: list[int | None] = []

    async def asking() -> None:
        while True:
            statuses.append(await own.status())

    async with asyncio.TaskGroup() as tasks:
        busy = tasks.create_task(asking(), name="asking")
        await put(mesh, STRICT)
        assert await plain.status() in (403, None)
        async with asyncio.timeout(30):
            await plain_tcp.ended()
        busy.cancel()
    assert set(statuses) == {200}
    assert await own_tcp.echoes()
    assert await (await Line.open(HTTP)).status() is None
    assert not await (await Line.open(TCP)).echoes()
