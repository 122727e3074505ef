"""Tests of attempts to bypass an authorizer, by callers that call the server's sidecar directly."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest
import pytest_asyncio
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived, TrailersReceived

from tests.e2e.policy.applications import GRPC, HTTP
from tests.e2e.policy.policies import ALL, EVERYTHING, authorization, target
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.servers import Authorizer
from tests.e2e.policy.topology import WORKLOADS
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.usefixtures("no_connections"),
]

RULES = (*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
PATIENT = "60s"
"""An authorizer's limit, for a machine on which twenty answers may take longer than the usual second."""
CALLER = "spiffe://cluster.local/ns/shop/sa/client"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def serving() -> AsyncIterator[Authorizer]:
    """One authorizer for all tests of the file."""
    async with AsyncExitStack() as ends:
        yield await Authorizer.start(ends)


@pytest_asyncio.fixture(loop_scope="session")
async def authorizer(mesh: PolicyMesh, serving: Authorizer) -> Authorizer:
    """The authorizer in force for v1; it refuses `/ab` and has no recorded requests."""
    serving.sets, serving.removes = {}, ()
    serving.decide = lambda request: request.attributes.request.http.path.partition("?")[0] != "/ab"
    at = {"host": "127.0.0.1", "port": serving.port}
    own = authorization("own", serviceAccounts=["v1"], timeout=PATIENT, **at)
    await mesh.enforce(*RULES, own)

    async def refused() -> bool:
        return (await mesh.get("client", "v1", "/ab")).status == 403

    await until(refused, seconds=20)
    serving.asked.clear()
    return serving


@asynccontextmanager
async def straight(
    mesh: PolicyMesh, port: int = HTTP
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect to the sidecar of v1 with the client's certificate."""
    context = mesh.certificate("client")
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(WORKLOADS["v1"].address, port, ssl=context)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


async def answer(reader: asyncio.StreamReader) -> tuple[int, str]:
    """Read an HTTP/1.1 response; return its status and content."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
    return int(head.split(" ")[1]), (await reader.readexactly(length)).decode()


async def said(mesh: PolicyMesh, head: str) -> tuple[int, str]:
    """Send a request exactly as written."""
    async with straight(mesh) as (reader, writer):
        writer.write(head.encode("latin-1"))
        return await answer(reader)


def heard(authorizer: Authorizer) -> list[str]:
    """Return the paths of the checked requests."""
    return [check_request.attributes.request.http.path for check_request in authorizer.asked]


TARGETS = (
    *("/a/../ab", "/x/y/../../ab", "/./ab", "/a/%2e%2e/ab", "/a/%2E%2e/ab", "/a/..%2fab", "/a/..\\ab"),
    *("//ab", "///ab", "/%61b", "/%61%62", "/a%62", "/ab/", "/ab/.", "/ab;x=1", "/ab%3Fx", "/ab%23", "/ab#x"),
    *(
        "/ab?",
        "/ab?/../y",
        "/ab?x=%2e%2e",
        "/AB",
        "/a%00b",
        "/%2561b",
        "http://other/ab",
        "http://v1/a/../ab",
    ),
    *("/\\ab", "/a%5c..%5cab", "/ab%20", "/ab%09", "/.ab", "/..ab", "/ab..", "/a/", "/b", "*"),
)


async def test_authorizer_checks_the_same_path_that_the_application_gets(
    mesh: PolicyMesh, authorizer: Authorizer
) -> None:
    """However a path is written, a request that passes was checked under the application's path."""
    passed = set()
    for written in TARGETS:
        authorizer.asked.clear()
        status, content = await said(mesh, f"GET {written} HTTP/1.1\r\nhost: v1\r\nconnection: close\r\n\r\n")
        if status == 200:
            (path,) = heard(authorizer)
            assert content == f"{HTTP} {path}", written
            assert path.partition("?")[0] != "/ab"
            passed.add(written)
        else:
            assert status in (301, 307, 400, 403, 404), (written, status)
    assert {"/b", "/AB", "/a/"} <= passed
    assert not passed & {"/ab?", "/a/../ab", "/%61b", "/./ab", "http://other/ab", "/a/%2e%2e/ab"}


async def test_every_request_of_a_connection_is_checked_by_the_authorizer(
    mesh: PolicyMesh, authorizer: Authorizer
) -> None:
    """Pipelined requests, sent before the first response, are checked one by one."""
    paths = ("/1", "/ab", "/2", "/ab", "/3")
    async with straight(mesh) as (reader, writer):
        writer.write("".join(f"GET {path} HTTP/1.1\r\nhost: v1\r\n\r\n" for path in paths).encode())
        assert [(await answer(reader))[0] for _ in paths] == [200, 403, 200, 403, 200]
    assert heard(authorizer) == list(paths)


async def test_every_stream_of_a_connection_is_checked_by_the_authorizer(
    mesh: PolicyMesh, authorizer: Authorizer
) -> None:
    """Of concurrent gRPC calls, those that the authorizer refuses do not reach the application."""
    connection = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
    connection.initiate_connection()
    wanted = {}
    for number in range(20):
        path = "/ab" if number % 3 == 0 else "/test.Echo/Say"
        stream = connection.get_next_available_stream_id()
        fields = {":method": "POST", ":scheme": "http", ":authority": "v1", ":path": path}
        connection.send_headers(
            stream, [*fields.items(), ("content-type", "application/grpc"), ("te", "trailers")]
        )
        connection.send_data(stream, b"\x00\x00\x00\x00\x05hello", end_stream=True)
        wanted[stream] = "7" if path == "/ab" else "0"
    result = dict[int, str]()
    async with straight(mesh, GRPC) as (reader, writer):
        writer.write(connection.data_to_send())
        while len(result) < len(wanted) and (data := await reader.read(65536)):
            for event in connection.receive_data(data):
                if isinstance(event, ResponseReceived | TrailersReceived):
                    fields = {str(name): str(value) for name, value in event.headers or ()}
                    if (status := fields.get("grpc-status")) is not None and event.stream_id is not None:
                        result[event.stream_id] = status
            writer.write(connection.data_to_send())
    assert result == wanted
    assert sorted(heard(authorizer)) == ["/ab"] * 7 + ["/test.Echo/Say"] * 13
    assert {check_request.attributes.source.principal for check_request in authorizer.asked} == {CALLER}


@pytest.mark.parametrize(
    "lines",
    [
        "x-user: admin",
        "X-USER: admin\r\nx-user: root",
        "x-user: admin\r\nconnection: x-user",  # what is named there is for one hop alone
        "x-user: admin\r\nx-envoy-original-path: /other",
        "connection: close, x-user",
    ],
)
async def test_authorizer_decides_the_final_request_headers(
    mesh: PolicyMesh, authorizer: Authorizer, lines: str
) -> None:
    """Headers that the authorizer sets replace the client's.

    Removed headers do not arrive, however often they were sent.
    """
    authorizer.sets, authorizer.removes = {"x-user": "client"}, ("x-secret",)
    more = (
        "x-secret: 1\r\nX-Secret: 2\r\nx-forwarded-client-cert: URI=spiffe://cluster.local/ns/shop/sa/thief"
    )
    head = f"GET /told HTTP/1.1\r\nhost: v1\r\n{lines}\r\n{more}\r\n\r\n"
    status, content = await said(mesh, head)
    arrived = [line.partition(": ")[::2] for line in content.lower().splitlines()]
    assert status == 200
    assert [value for name, value in arrived if name == "x-user"] == ["client"]
    assert "x-secret" not in dict(arrived)
    assert "thief" not in content
    (asked,) = authorizer.asked
    assert (asked.attributes.source.principal, asked.attributes.request.http.path) == (CALLER, "/told")


async def test_websocket_is_checked_by_the_authorizer_once_at_its_upgrade(
    mesh: PolicyMesh, authorizer: Authorizer
) -> None:
    """Only the upgrade request is checked, and a refused upgrade opens no WebSocket."""
    authorizer.decide = lambda request: request.attributes.request.http.path != "/no/ws"
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(mesh.url("client", "v1") + "/ws") as socket:
            for word in ("one", "two"):
                await socket.send_str(word)
                assert (await socket.receive_str(timeout=20)) == f"heard {word}"
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(mesh.url("client", "v1") + "/no/ws")
    assert refused.value.status == 403
    assert heard(authorizer) == ["/ws", "/no/ws"]
