"""Gateways with TLS and TCP listeners in a real Envoy, as clients outside of the mesh see them.

The backends have no sidecars, so the gateway's Envoy is the only one.
"""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import h2.config
import h2.connection
import h2.events
import pytest
import pytest_asyncio

from meshwright.admin.pages.calls.access_line import question
from meshwright.admin.pages.calls.explain import answer
from tests.golden.running_mesh import LiveMesh, serve
from tests.tools.deadline import until
from tests.tools.tls_secrets import EdgePair, self_signed

pytestmark = [pytest.mark.envoy, pytest.mark.asyncio(loop_scope="module")]

NET: Final = f"127.{100 + os.getpid() % 100}.{100 + os.getpid() // 100 % 150}"
EDGE, WEB, OTHER, SECURE = (f"{NET}.{number}" for number in (1, 2, 3, 4))
HTTPS, TLS, TCP, CLOSED, SPLIT, NARROW = 14443, 14444, 14445, 14446, 14447, 14448
APPLICATION: Final = 14001
REPLACED: Final = 100
"""Certificates that one Secret has one after the other, under requests."""


def _backend(name: str, address: str, protocol: str) -> str:
    return f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default}}
spec:
  selector: {{app: {name}}}
  ports: [{{name: web, port: {APPLICATION}, appProtocol: {protocol}}}]
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: {name}, namespace: default, labels: {{app: {name}}}}}
spec: {{address: {address}, serviceAccount: {name}}}
---"""


def _listener(name: str, port: int, protocol: str, hostname: str = "", tls: str = "") -> str:
    hostname = f", hostname: '{hostname}'" if hostname else ""
    tls = f", tls: {tls}" if tls else ""
    return f"  - {{name: {name}, port: {port}, protocol: {protocol}{hostname}{tls}}}\n"


def _shown(secret: str) -> str:
    return f"{{certificateRefs: [{{name: {secret}}}]}}"


def _route(kind: str, name: str, section: str, backends: str, hostname: str = "") -> str:
    hostnames = f"\n  hostnames: ['{hostname}']" if hostname else ""
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata: {{name: {name}, namespace: default}}
spec:
  parentRefs: [{{name: edge, sectionName: {section}}}]{hostnames}
  rules: [{{backendRefs: [{backends}]}}]
---"""


def _to(name: str, weight: int = 1) -> str:
    return f"{{name: {name}, port: {APPLICATION}, weight: {weight}}}"


TEAM: Final = f"""
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{name: team, namespace: team}}
spec:
  parentRef: {{name: edge, namespace: default}}
  listeners:
{_listener("any", HTTPS, "HTTPS", "team.example", _shown("team"))}\
{_listener("lost", HTTPS, "HTTPS", "second.example", _shown("team"))}\
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: team, namespace: team}}
spec:
  parentRefs: [{{group: gateway.networking.k8s.io, kind: ListenerSet, name: team}}]
  rules: [{{backendRefs: [{{name: other, namespace: default, port: {APPLICATION}}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {{name: team, namespace: default}}
spec:
  from: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: team}}]
  to: [{{group: "", kind: Service}}]
---"""
"""A ListenerSet of another namespace, with a listener that loses against one of the gateway."""

MESH: Final = f"""
{_backend("web", WEB, "http")}
{_backend("other", OTHER, "http")}
{_backend("secure", SECURE, "tcp")}
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
  allowedListeners: {{namespaces: {{from: All}}}}
  listeners:
{_listener("any", HTTPS, "HTTPS", tls=_shown("any"))}\
{_listener("second", HTTPS, "HTTPS", "second.example", _shown("second"))}\
{_listener("broken", HTTPS, "HTTPS", "broken.example", _shown("missing"))}\
{_listener("passed", TLS, "TLS", "*.passed.example", "{mode: Passthrough}")}\
{_listener("ended", TLS, "TLS", "ended.example", _shown("ended"))}\
{_listener("lonely", TLS, "TLS", "lonely.example", _shown("ended"))}\
{_listener("gone", TLS, "TLS", "gone.example", _shown("ended"))}\
{_listener("tcp", TCP, "TCP")}\
{_listener("closed", CLOSED, "TCP")}\
{_listener("split", SPLIT, "TCP")}\
{_listener("narrow", NARROW, "HTTPS", "any.example", _shown("any"))}\
---
{TEAM}
{_route("HTTPRoute", "any", "any", _to("web"), "any.example")}
{_route("HTTPRoute", "second", "second", _to("other"))}
{_route("TLSRoute", "passed", "passed", _to("secure"), "shop.passed.example")}
{_route("TLSRoute", "ended", "ended", _to("web"), "ended.example")}
{_route("HTTPRoute", "narrow", "narrow", _to("web"))}
{_route("TLSRoute", "gone", "gone", _to("missing"), "gone.example")}
{_route("TCPRoute", "tcp", "tcp", _to("web"))}
{_route("TCPRoute", "split", "split", f"{_to('web')}, {_to('missing')}, {_to('other', 0)}")}
"""
ANY, SECOND, ENDED, SECURED, TEAMS = (
    self_signed(*names)
    for names in (
        ("any.example", "second.example", "broken.example"),
        ("second.example", "any.example"),
        ("ended.example",),
        ("shop.passed.example",),
        ("team.example", "second.example", "any.example"),
    )
)


def manifests(any_pair: EdgePair = ANY) -> str:
    """Return the mesh with its Secrets."""
    pairs = {"any": any_pair, "second": SECOND, "ended": ENDED}
    secrets = (pair.manifest(name) for name, pair in pairs.items())
    return "---\n".join((MESH, *secrets, TEAMS.manifest("team", "team")))


class _Named:
    """An application with HTTP that answers with its name."""

    def __init__(self, name: str) -> None:
        self._name = name.encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests without bodies until the client ends."""
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(self._name)
                writer.write(head + self._name)
        except asyncio.IncompleteReadError:
            writer.close()


async def _secure(folder: Path, ends: AsyncExitStack) -> None:
    """Run an application with its own TLS that answers with the server name that it was asked for."""
    file = folder / "secure.pem"
    file.write_bytes(SECURED.chain + SECURED.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    asked: list[str | None] = []

    def note(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
        asked.append(name)

    context.sni_callback = note

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(str(asked[-1]).encode())
        writer.close()

    server = await asyncio.start_server(answer, SECURE, APPLICATION, ssl=context)
    ends.callback(server.close)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveMesh]:
    """A gateway in front of three applications."""
    async with AsyncExitStack() as ends:
        folder = tmp_path_factory.mktemp("edge")
        await serve(ends, WEB, APPLICATION, _Named("web").serve)
        await serve(ends, OTHER, APPLICATION, _Named("other").serve)
        await _secure(folder, ends)
        live = await LiveMesh.start(folder, manifests(), ends)
        await live.envoy("edge-uuid")
        await live.in_force()
        yield live
        assert await live.complaints() == ""


@dataclass
class Connection:
    """A client's connection with TLS."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def tls(self) -> ssl.SSLObject:
        """The state of TLS."""
        found: ssl.SSLObject = self.writer.get_extra_info("ssl_object")
        return found

    async def request(self, host: str) -> tuple[int, str]:
        """Send a request with HTTP/1.1; return status and body."""
        self.writer.write(f"GET / HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line[16:]) for line in head.lower().splitlines() if line[:15] == "content-length:")
        body = await self.reader.readexactly(length)
        return int(head.split()[1]), body.decode()


async def connect(name: str, *trusted: EdgePair, port: int = HTTPS, alpn: tuple[str, ...] = ()) -> Connection:
    """Connect with TLS for a server name, and verify the certificate unless none is trusted."""
    context = ssl.create_default_context(cadata="".join(pair.chain.decode() for pair in trusted) or None)
    if not trusted:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(list(alpn))
    return Connection(*await asyncio.open_connection(EDGE, port, ssl=context, server_hostname=name))


async def statuses(connection: Connection, *hosts: str) -> list[int]:
    """Send one request with HTTP/2 for each host on one connection; return the statuses."""
    client = h2.connection.H2Connection(h2.config.H2Configuration())
    client.initiate_connection()
    found: list[int] = []
    for host in hosts:
        head = [(":method", "GET"), (":path", "/"), (":scheme", "https"), (":authority", host)]
        client.send_headers(client.get_next_available_stream_id(), head, end_stream=True)
        connection.writer.write(client.data_to_send())
        answered = len(found) + 1
        while len(found) < answered:
            data = await connection.reader.read(65536)
            assert data, "the connection was closed"
            events = client.receive_data(data)
            found += [
                int(dict(event.headers)[b":status"])
                for event in events
                if isinstance(event, h2.events.ResponseReceived)
            ]
            connection.writer.write(client.data_to_send())
    return found


async def test_server_name_selects_certificate_and_routes(mesh: LiveMesh) -> None:
    """HTTPRouteHTTPSListener: each listener has its certificate, and its routes alone."""
    first, second = await connect("any.example", ANY), await connect("second.example", SECOND)
    assert await first.request("any.example") == (200, "web")
    assert await first.request(f"any.example:{HTTPS}") == (200, "web")
    assert (await first.request("nobody.example"))[0] == 404
    assert await second.request("second.example") == (200, "other")


async def test_listener_of_a_set_has_certificate_and_routes_of_its_own(mesh: LiveMesh) -> None:
    """ListenerSetHTTPRouting with TLS: the gateway keeps `second.example`, and the routes of `any`."""
    team, second = await connect("team.example", TEAMS), await connect("second.example", SECOND)
    assert await team.request("team.example") == (200, "other")
    assert await second.request("second.example") == (200, "other")
    assert [(await team.request(host))[0] for host in ("any.example", "second.example")] == [421, 421]


async def test_listener_without_a_certificate_is_not_served(mesh: LiveMesh) -> None:
    """Its name is the wider listener's, whose certificate the client gets."""
    assert (await (await connect("broken.example", ANY)).request("broken.example"))[0] == 404


async def test_misdirected_requests_of_http2_are_answered_421(mesh: LiveMesh) -> None:
    """HTTPRouteHTTPSListenerDetectMisdirectedRequests: a browser opens another connection then."""
    first = await connect("any.example", ANY, alpn=("h2", "http/1.1"))
    second = await connect("second.example", SECOND, alpn=("h2",))
    assert (first.tls.selected_alpn_protocol(), second.tls.selected_alpn_protocol()) == ("h2", "h2")
    assert await statuses(first, "any.example", "second.example", "nobody.example") == [200, 421, 404]
    assert await statuses(second, "second.example", "any.example", "nobody.example") == [200, 421, 421]


async def test_client_without_http2_gets_http1(mesh: LiveMesh) -> None:
    """The versions of TLS are 1.2 and 1.3."""
    connection = await connect("any.example", ANY, alpn=("http/1.1",))
    assert connection.tls.selected_alpn_protocol() == "http/1.1"
    context = ssl.create_default_context(cadata=ANY.chain.decode())
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    opened = await asyncio.open_connection(EDGE, HTTPS, ssl=context, server_hostname="any.example")
    older = Connection(*opened)
    assert older.tls.version() == "TLSv1.2"
    assert await older.request("any.example") == (200, "web")


async def test_passed_connection_reaches_the_backend_with_its_server_name(mesh: LiveMesh) -> None:
    """TLSRouteSimpleSameNamespace: the gateway has no certificate for it."""
    connection = await connect("shop.passed.example", SECURED, port=TLS)
    assert await connection.reader.read() == b"shop.passed.example"


@pytest.mark.parametrize(
    "name",
    ["cart.passed.example", "lonely.example", "nobody.example"],
    ids=["no route", "no route, TLS is ended", "no listener"],
)
async def test_other_server_names_are_refused(mesh: LiveMesh, name: str) -> None:
    """TLSRouteHostnameIntersection: the listener's own name without a route, and a name of nobody."""
    with pytest.raises((ConnectionError, ssl.SSLError)):
        await connect(name, SECURED, port=TLS)


async def test_ended_connection_reaches_the_backend_in_plain_text(mesh: LiveMesh) -> None:
    """TLSRouteTerminateSimpleSameNamespace, on one port with a listener that passes TLS on."""
    connection = await connect("ended.example", ENDED, port=TLS)
    assert await connection.request("whatever.example") == (200, "web")


async def _tcp(port: int) -> bytes:
    reader, writer = await asyncio.open_connection(EDGE, port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        return await reader.readuntil(b"\r\n\r\n") + await reader.read(5)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    finally:
        writer.close()


async def test_tcp_listener_forwards_connections(mesh: LiveMesh) -> None:
    """A listener without a route closes them."""
    assert (await _tcp(TCP)).endswith(b"web")
    assert await _tcp(CLOSED) == b""


async def test_broken_share_of_connections_is_closed(mesh: LiveMesh) -> None:
    """A missing backend has half of the shares, and one of weight 0 has none."""
    answers = [await _tcp(SPLIT) for _ in range(40)]
    assert {answer[-3:] for answer in answers} == {b"web", b""}


CALLS: Final = [
    (port, name, host)
    for port in (HTTPS, NARROW, TLS)
    for name in (
        "any.example",
        "second.example",
        "broken.example",
        "ended.example",
        "lonely.example",
        "gone.example",
    )
    for host in (name, "any.example", "second.example", "nobody.example")
]
_ANSWERS: Final = {200: "allowed", 404: "refused: 404", 421: "refused: 421"}


async def test_explanation_has_the_answer_of_the_proxy(mesh: LiveMesh) -> None:
    """The answer to each server name and host: a status, or a connection closed in the handshake."""
    seen: dict[tuple[int, str, str], str] = {}
    explained: dict[tuple[int, str, str], object] = {}
    for port, name, host in CALLS:
        try:
            status, _ = await (await connect(name, port=port)).request(host)
            seen[port, name, host] = _ANSWERS[status]
        except (ConnectionError, ssl.SSLError):
            seen[port, name, host] = "refused: the connection is closed in the TLS handshake"
        asked = {"gateway": f"default/edge:{port}", "host": name}
        explained[port, name, host] = answer(mesh.view, asked, [f"Host: {host}"])["headline"]
    assert explained == seen
    assert len(set(seen.values())) == 4


def _authority(line: str) -> object:
    """Return the host in a line of the access log; None for a line without requests."""
    return json.loads(line).get("authority") if line.startswith("{") else None


async def test_lines_of_the_access_log_are_explained_with_their_answers(mesh: LiveMesh) -> None:
    """Each line alone leads to the gateway, the port, the server name and the host of the request."""
    asked = [
        ("any.example", "any.example"),
        ("any.example", "second.example"),
        ("second.example", "b.example"),
    ]
    for name, host in asked:
        await (await connect(name)).request(f"{host}:{HTTPS}")

    def lines() -> list[str]:
        return mesh.logs["edge-uuid"].with_name("access.log").read_text().splitlines()[-len(asked) :]

    await until(lambda: [_authority(line) for line in lines()] == [f"{host}:{HTTPS}" for _, host in asked])
    explained = {}
    for line in lines():
        found = question(mesh.view, {"line": line}, ())
        explained[found.logged["response_code"]] = answer(mesh.view, found.query, found.headers)["headline"]
    assert explained == {"200": "allowed", "421": "refused: 421"}


async def test_replaced_certificate_loses_no_request(mesh: LiveMesh) -> None:
    """A connection opened before stays, new ones get the new certificate, and no listener changes."""
    kept = await connect("any.example", ANY)
    changed = "listener_manager.listener_modified", "listener_manager.listener_in_place_updated"
    before = [await mesh.stat("edge-uuid", name) for name in changed]
    shown: set[bytes] = set()
    for _ in range(REPLACED):
        pair = self_signed("any.example")
        wanted = ssl.PEM_cert_to_DER_cert(pair.chain.decode())
        mesh.apply(manifests(pair))

        async def is_shown(wanted: bytes = wanted) -> bool:
            new = await connect("any.example")
            assert await new.request("any.example") == await kept.request("any.example") == (200, "web")
            new.writer.close()
            seen = new.tls.getpeercert(binary_form=True)
            assert seen is not None
            shown.add(seen)
            return seen == wanted

        await until(is_shown)
    assert len(shown) >= REPLACED
    assert [await mesh.stat("edge-uuid", name) for name in changed] == before
    mesh.apply(manifests())
    await mesh.in_force()
