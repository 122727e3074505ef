"""Limits, client addresses and rates of a gateway's listeners in a real Envoy, under floods of bad clients.

Each scene has a listener of its own at one gateway, with a ClientTrafficPolicy, and a listener without one is
the control. The backend has no sidecar and answers with the request that it has got.
"""

import asyncio
import contextlib
import json
import os
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import h2.config
import h2.connection
import h2.events
import pytest
import pytest_asyncio

from tests.e2e.policy.servers import RateLimiter
from tests.golden.running_mesh import LiveMesh, serve
from tests.tools.deadline import until
from tests.tools.tls_secrets import self_signed

pytestmark = [pytest.mark.envoy, pytest.mark.asyncio(loop_scope="module")]

NET: Final = f"127.{100 + os.getpid() % 100}.{100 + os.getpid() // 100 % 150}"
EDGE, WEB, CLIENT = f"{NET}.1", f"{NET}.2", "127.0.0.1"
APPLICATION: Final = 14001
SCENES: Final = {
    "control": "",
    "few": "connections: {max: 3}",
    "slow": "timeouts: {idle: 300ms, requestHeaders: 300ms, request: 600ms, streamIdle: 400ms}",
    "small": "headers: {maxSize: 2Ki, maxCount: 20}",
    "streams": "http2: {maxConcurrentStreams: 5}",
    "kept": "path: {mergeSlashes: false, escapedSlashes: Keep}",
    "redirected": "path: {escapedSlashes: UnescapeAndRedirect}",
    "hops": "clientAddress: {trustedHops: 1}",
    "proxied": "clientAddress: {proxyProtocol: true}",
    "total": "rateLimit: {local: {http: {requests: 2, unit: hour, burst: 1}}}, "
    "httpRoutes: [{path: /dear/.*, rateLimit: {local: {requests: 1, unit: hour, responseStatusCode: 503}}}]",
    "client": "rateLimit: {local: {perClient: {requests: 2, unit: hour, "
    "responseHeadersToAdd: [{name: retry-after, value: '60'}]}}}, clientAddress: {proxyProtocol: true}",
    "dialled": "rateLimit: {local: {tcp: {connections: 2, unit: hour}}}",
    "asking": "clientAddress: {proxyProtocol: true}, rateLimit: {global: {http: {domain: edge, timeout: 5s, "
    "rateLimitService: {host: 127.0.0.1, port: LIMITER}, descriptors: [{entries: [{remoteAddress: {}}]}]}}}",
    "secure": "timeouts: {handshake: 300ms}, clientAddress: {proxyProtocol: true}",
    "forwarded": "timeouts: {idle: 300ms}, connections: {max: 2}",
    "opaque": "",
}
"""Listeners by name, each with the settings of its policy, and at a port of its own."""

PORTS: Final = {name: 15080 + number for number, name in enumerate(SCENES)}


PROTOCOLS: Final = {
    "secure": "HTTPS, tls: {certificateRefs: [{name: secure}]}",
    "forwarded": "TCP",
    "opaque": "TCP",
}
"""Protocols of listeners other than HTTP."""

SECURE: Final = self_signed("secure.example")


def _listener(name: str, port: int) -> str:
    return f"  - {{name: {name}, port: {port}, protocol: {PROTOCOLS.get(name, 'HTTP')}}}\n"


def _policy(name: str, settings: str) -> str:
    return f"""
apiVersion: policy.meshwright.dev/v1alpha1
kind: ClientTrafficPolicy
metadata: {{name: {name}, namespace: default}}
spec: {{targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: edge, sectionName: {name}}}],
  {settings}}}
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
  listeners:
{"".join(_listener(name, port) for name, port in PORTS.items())}\
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: web, namespace: default}}
spec:
  parentRefs: [{{name: edge}}]
  rules: [{{backendRefs: [{{name: web, port: {APPLICATION}}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {{name: web, namespace: default}}
spec:
  parentRefs: [{{name: edge}}]
  rules: [{{backendRefs: [{{name: web, port: {APPLICATION}}}]}}]
---
{SECURE.manifest("secure")}
---
{"".join(_policy(name, settings) for name, settings in SCENES.items() if settings)}
"""


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request with its path and headers; a path with `late` late, and one with `wait` never."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while lines := (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]:
            headers = dict(line.split(": ", 1) for line in lines[1:])
            await reader.readexactly(int(headers.get("content-length", "0")))
            if "/late" in lines[0]:
                await asyncio.sleep(0.1)
            if "/wait" in lines[0]:
                await reader.read()  # until the gateway gives up
            body = json.dumps({"path": lines[0].split()[1], **headers}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    writer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveMesh]:
    """A gateway in front of one application."""
    async with AsyncExitStack() as ends:
        await serve(ends, WEB, APPLICATION, _echo)
        LIMITER.append(await RateLimiter.start(ends))
        manifests = MESH.replace("LIMITER", str(LIMITER[0].port))
        live = await LiveMesh.start(tmp_path_factory.mktemp("limits"), manifests, ends)
        await live.envoy("edge-uuid")
        await live.in_force()
        yield live
        assert await live.complaints() == ""


LIMITER: Final[list[RateLimiter]] = []
"""The rate limit service, once it runs."""

_OPENED: Final[list["Client"]] = []


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def ended() -> AsyncIterator[None]:
    """Close all connections at the end of a test."""
    yield
    while _OPENED:
        _OPENED.pop().writer.transport.abort()
    await asyncio.sleep(0)


@dataclass
class Client:
    """A client's connection in plain text."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, text: str) -> None:
        """Send a part of a request."""
        self.writer.write(text.encode())

    async def answer(self) -> tuple[int, dict[str, str], str]:
        """Return the status, the headers and the body of a response."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        headers = dict(line.split(": ", 1) for line in head[1:])
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(head[0].split()[1]), headers, body.decode()

    async def get(self, path: str = "/", **headers: str) -> tuple[int, dict[str, str], str]:
        """Send a request, with underscores in names of headers as hyphens; return the response."""
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([f"GET {path} HTTP/1.1", "host: a.example", *lines, "", ""]))
        return await self.answer()

    async def is_closed(self) -> bool:
        """Return whether the gateway has closed the connection, now or within 50 ms."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                with contextlib.suppress(ConnectionError):
                    while await self.reader.read(65536):
                        pass
                return True
        return False


async def connect(scene: str, before: bytes = b"") -> Client:
    """Connect to the listener of a scene, and send bytes."""
    client = Client(*await asyncio.open_connection(EDGE, PORTS[scene]))
    _OPENED.append(client)
    client.writer.write(before)
    return client


async def closed(*clients: Client) -> None:
    """Wait until the gateway has closed all these connections."""

    async def are_closed() -> bool:
        return all(await asyncio.gather(*(client.is_closed() for client in clients)))

    await until(are_closed)


async def get(scene: str, path: str = "/", before: bytes = b"", **headers: str) -> tuple[int, dict[str, str]]:
    """Send a request on a connection of its own; return the status, and what the backend has got."""
    client = await connect(scene, before)
    status, _, body = await client.get(path, **headers)
    client.writer.close()
    return status, json.loads(body) if status == 200 else {}


async def test_connections_beyond_the_limit_are_closed(mesh: LiveMesh) -> None:
    """Open ones go on, and a closed one makes room; without the limit all are served."""
    first = [await connect("few") for _ in range(3)]
    assert [(await client.get())[0] for client in first] == [200] * 3
    flood = [await connect("few") for _ in range(50)]
    await closed(*flood)
    assert [(await client.get())[0] for client in first] == [200] * 3
    assert await mesh.stat("edge-uuid", f"connection_limit.edge.{PORTS['few']}.limited_connections") == 50
    first[0].writer.close()

    async def is_served() -> bool:
        client = await connect("few")
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            return (await client.get())[0] == 200
        return False

    await until(is_served)
    crowd = [await connect("control") for _ in range(53)]
    assert [(await client.get())[0] for client in crowd] == [200] * 53


async def test_slow_clients_are_ended(mesh: LiveMesh) -> None:
    """Headers, a body, silence of a request and silence between requests; the defaults are longer."""

    async def flood(scene: str) -> list[Client]:
        idle = await connect(scene)
        assert (await idle.get())[0] == 200
        clients = [idle, *[await connect(scene) for _ in range(40)]]
        for client in clients[1:20]:
            client.send("GET / HTTP/1.1\r\nhost: a.example\r\nx-slow: ")
        for client in clients[20:30]:
            client.send("POST / HTTP/1.1\r\nhost: a.example\r\ncontent-length: 99\r\n\r\n")
        for client in clients[30:]:
            client.send("GET /wait HTTP/1.1\r\nhost: a.example\r\n\r\n")
        return clients

    slow, control = await flood("slow"), await flood("control")

    async def are_ended() -> bool:
        for client in slow[20:30]:
            client.send("x")  # a byte now and then keeps the stream alive, and not the request
        return all(await asyncio.gather(*(client.is_closed() for client in slow)))

    assert (await get("slow"))[0] == 200
    await until(are_ended)
    assert (await get("slow"))[0] == 200
    assert not any(await asyncio.gather(*(client.is_closed() for client in control)))


async def test_large_headers_are_refused(mesh: LiveMesh) -> None:
    """By size and by number, with status 431; the default limits are those of the mesh."""
    many = {f"x_{number}": "1" for number in range(30)}
    assert [(await get(scene, x_big="b" * 3000))[0] for scene in ("small", "control")] == [431, 200]
    assert [(await get(scene, "/", b"", **many))[0] for scene in ("small", "control")] == [431, 200]
    assert [(await get("small"))[0], (await get("control", x_big="b" * 70_000))[0]] == [200, 431]


def _h2() -> h2.connection.H2Connection:
    client = h2.connection.H2Connection(h2.config.H2Configuration())
    client.initiate_connection()
    return client


def _open(client: h2.connection.H2Connection, path: str = "/wait") -> int:
    stream = client.get_next_available_stream_id()
    head = [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", "a.example")]
    client.send_headers(stream, head, end_stream=True)
    return stream


async def test_http2_has_limits_of_streams_and_windows(mesh: LiveMesh) -> None:
    """The gateway announces them, and clients keep to them."""
    found: dict[str, tuple[int, int]] = {}
    for scene in ("control", "streams"):
        connection, client = await connect(scene), _h2()
        connection.writer.write(client.data_to_send())
        while client.remote_settings.max_concurrent_streams > 2**31 - 2:
            client.receive_data(await connection.reader.read(65536))
        found[scene] = (
            client.remote_settings.max_concurrent_streams,
            client.remote_settings.initial_window_size,
        )
    assert found == {"control": (100, 65536), "streams": (5, 65536)}


async def test_rapid_reset_ends_the_connection(mesh: LiveMesh) -> None:
    """A client that cancels each request at once is disconnected, and others are served meanwhile."""
    before = await mesh.stat("edge-uuid", "downstream_rq_too_many_premature_resets")
    connection, client = await connect("control"), _h2()

    async def flood() -> None:
        for _ in range(2000):
            client.reset_stream(_open(client))
            connection.writer.write(client.data_to_send())
            await connection.writer.drain()
            await asyncio.sleep(0)

    async def is_ended() -> bool:
        with contextlib.suppress(ConnectionError):
            await flood()
        return await mesh.stat("edge-uuid", "downstream_rq_too_many_premature_resets") == before + 1

    flooding = asyncio.create_task(until(is_ended))
    served = [(await get("control"))[0] for _ in range(20)]
    await flooding
    assert served == [200] * 20
    await closed(connection)


async def test_paths_are_made_canonical(mesh: LiveMesh) -> None:
    """Dot segments and double slashes, so that a route decides about the path that the backend gets."""
    paths = ("/a/../b", "/a/%2e%2e/b", "/a//b///c", "/%41%2Db", "/a%2Fb", "/a%5cb", "/a/..%2f..%2fb")
    found = {scene: [await get(scene, path) for path in paths] for scene in ("control", "kept", "redirected")}
    seen = {
        scene: [got.get("path", str(status)) for status, got in answers] for scene, answers in found.items()
    }
    assert seen == {
        "control": ["/b", "/b", "/a/b/c", "/A-b", "400", "400", "400"],
        "kept": ["/b", "/b", "/a//b///c", "/A-b", "/a%2Fb", "/a%5cb", "/a/..%2f..%2fb"],
        "redirected": ["/b", "/b", "/a/b/c", "/A-b", "307", "307", "307"],
    }


async def test_client_cannot_forge_an_address(mesh: LiveMesh) -> None:
    """The address of the connection is appended, and Envoy's own headers are taken from nobody."""
    _, got = await get("control", x_forwarded_for="192.0.2.9", x_envoy_external_address="192.0.2.9")
    assert (got["x-forwarded-for"], got["x-envoy-external-address"]) == (f"192.0.2.9,{CLIENT}", CLIENT)
    late = await get("control", "/late", x_envoy_upstream_rq_timeout_ms="1", x_forwarded_proto="https")
    assert (late[0], late[1]["x-forwarded-proto"]) == (200, "http")
    assert [name for name in late[1] if name.startswith("x-envoy")] == ["x-envoy-external-address"]


async def test_trusted_hop_gives_the_address(mesh: LiveMesh) -> None:
    """The last address of X-Forwarded-For is the one that a single trusted proxy has appended."""
    _, got = await get("hops", x_forwarded_for="192.0.2.9, 198.51.100.7")
    assert got["x-envoy-external-address"] == "198.51.100.7"
    assert (await get("hops"))[1]["x-envoy-external-address"] == CLIENT


def _v1(address: str) -> bytes:
    return f"PROXY TCP4 {address} 192.0.2.1 5555 80\r\n".encode()


def _v2(address: str) -> bytes:
    places = bytes(map(int, address.split("."))) + bytes((192, 0, 2, 1)) + struct.pack("!HH", 5555, 80)
    return b"\r\n\r\n\x00\r\nQUIT\n\x21\x11" + struct.pack("!H", len(places)) + places


async def test_proxy_protocol_gives_the_address(mesh: LiveMesh) -> None:
    """Versions 1 and 2; a connection without a header is closed, and elsewhere such a header is an error."""
    for header in (_v1("198.51.100.7"), _v2("198.51.100.7")):
        status, got = await get("proxied", before=header, x_forwarded_for="192.0.2.9")
        assert (status, got["x-forwarded-for"]) == (200, "192.0.2.9,198.51.100.7")
        assert (await get("control", before=header))[0] == 400
    bare = await connect("proxied", b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n")
    await closed(bare)


async def test_rate_of_all_requests_and_of_a_path(mesh: LiveMesh) -> None:
    """Three requests in an hour over all connections; those of the path have a limit of their own."""
    assert [(await get("total", f"/{number}"))[0] for number in range(5)] == [200, 200, 200, 429, 429]
    assert [(await get("total", f"/dear/{number}?a=b"))[0] for number in range(3)] == [200, 503, 503]
    assert [(await get("control"))[0] for _ in range(10)] == [200] * 10


async def test_rate_of_each_client_address(mesh: LiveMesh) -> None:
    """A forged X-Forwarded-For is no new client, and a flood of one client leaves the others alone."""

    async def of(address: str, forged: str = "192.0.2.9") -> int:
        return (await get("client", before=_v1(address), x_forwarded_for=forged))[0]

    flood = [await of("198.51.100.7", f"192.0.2.{number}") for number in range(20)]
    assert flood == [200] * 2 + [429] * 18
    assert [await of("198.51.100.8") for _ in range(3)] == [200, 200, 429]
    limited = await (await connect("client", _v1("198.51.100.8"))).get()
    assert (limited[0], limited[1]["retry-after"]) == (429, "60")


async def test_rate_of_connections(mesh: LiveMesh) -> None:
    """Connections beyond it are closed, and open ones go on."""
    first = [await connect("dialled") for _ in range(2)]
    assert [(await client.get())[0] for client in first] == [200] * 2
    flood = [await connect("dialled") for _ in range(20)]
    await closed(*flood)
    assert [(await client.get())[0] for client in first] == [200] * 2


async def test_rate_limit_service_counts_by_the_trusted_address(mesh: LiveMesh) -> None:
    """A forged X-Forwarded-For does not change the address that the service counts."""
    client = (("remote_address", "198.51.100.7"),)
    LIMITER[0].begin({client: 2})
    asked = [
        (await get("asking", before=_v1(client[0][1]), x_forwarded_for=f"192.0.2.{n}"))[0] for n in range(4)
    ]
    other = (await get("asking", before=_v1("198.51.100.8")))[0]
    assert (asked, other) == ([200, 200, 429, 429], 200)
    assert LIMITER[0].asked[0] == ("edge", (client,))


async def test_silent_client_of_tls_is_ended(mesh: LiveMesh) -> None:
    """After the hello a client must finish the handshake; a header of the PROXY protocol comes before TLS."""
    context = ssl.create_default_context(cadata=SECURE.chain.decode())
    sent = ssl.MemoryBIO()
    hello = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="secure.example")
    with contextlib.suppress(ssl.SSLWantReadError):
        hello.do_handshake()
    silent = await connect("secure", _v1("198.51.100.7") + sent.read())
    await closed(silent)
    good = await connect("secure", _v2("198.51.100.7"))
    await good.writer.start_tls(context, server_hostname="secure.example")
    status, _, body = await good.get()
    got = json.loads(body)
    assert (status, got["x-forwarded-for"], got["x-forwarded-proto"]) == (200, "198.51.100.7", "https")


async def test_forwarded_connections_have_limits_too(mesh: LiveMesh) -> None:
    """Those of a TCP listener: their number, and the time without a byte."""
    first = [await connect("forwarded") for _ in range(2)]
    assert [(await client.get())[0] for client in first] == [200] * 2
    await closed(await connect("forwarded"))
    control = await connect("opaque")
    assert (await control.get())[0] == 200
    await closed(*first)
    assert not await control.is_closed()
