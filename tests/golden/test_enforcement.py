"""Tests of access control by real Envoys, compared with the oracle."""

import asyncio
import itertools
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import grpc
import grpc.aio
import pytest
import pytest_asyncio

from catalog.explain import explain
from catalog.oracle.decide import Answer, Request, decide
from catalog.store.inventory import by_identity
from certs.contract import KeyKind
from certs.keys.pair import KeyPairOptions
from certs.manager import CertificateManager
from certs.state.pair_files import PairFiles
from meshwright.admin.pages.calls.access_line import question
from meshwright.admin.pages.calls.explain import read_request
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName, ServiceName
from meshwright.mesh.service import ServiceKey
from tests.golden import rules_in_listeners
from tests.golden.running_mesh import TRUST_DOMAIN, LiveMesh, serve
from tests.meshes.resources import resources
from tests.tools.deadline import until
from tests.tools.own_authority import own_authority
from tests.unit.certs.issuers.example_cas import Ca, ca

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
]

NET = f"127.{100 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
SERVER, SERVER_APP, ALICE = f"{NET}.1", f"{NET}.2", f"{NET}.3"
HTTP, GRPC, TCP = 8080, 50051, 3306
DENIED, ALICE_LACKS = "x-meshwright-denied", "no-rule-fits default/alice-to-shop"
GREETING = b"I speak first\n"

MESH = f"""
apiVersion: v1
kind: Service
metadata: {{name: shop, namespace: default}}
spec:
  selector: {{app: shop}}
  ports:
    - {{name: web, port: 80, targetPort: {HTTP}, appProtocol: http}}
    - {{name: grpc-api, port: {GRPC}}}
    - {{name: greet, port: {TCP}, appProtocol: tcp-server-first}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: shop, namespace: default, labels: {{app: shop}}}}
spec: {{address: {SERVER}, applicationAddress: {SERVER_APP}, serviceAccount: shop, uuid: shop-uuid}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: alice, namespace: default, labels: {{app: alice}}}}
spec:
  address: {ALICE}
  serviceAccount: alice
  uuid: alice-uuid
  upstreams:
    - {{service: shop, port: 80, address: {ALICE}, localPort: 80}}
    - {{service: shop, port: {GRPC}, address: {ALICE}, localPort: {GRPC}}}
    - {{service: shop, port: {TCP}, address: {ALICE}, localPort: {TCP}}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: bob, namespace: default, labels: {{app: bob}}}}
spec: {{address: {NET}.4, serviceAccount: bob, uuid: bob-uuid}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: eve, namespace: default, labels: {{app: eve}}}}
spec: {{address: {NET}.5, serviceAccount: eve, uuid: eve-uuid}}
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {{name: routes, namespace: default}}
spec:
  matches:
    - {{name: books, pathRegex: /books.*, methods: ['*']}}
    - {{name: read, pathRegex: /books, methods: [GET, HEAD]}}
    - name: curl
      pathRegex: /status
      methods: [GET]
      headers: [{{user-agent: 'curl/.*'}}, {{x-tag: 'a|b'}}]
    - {{name: host, pathRegex: /host, headers: [{{host: 'shop\\.example'}}]}}
    - {{name: grpc, pathRegex: /test.Echo/.*, methods: [POST]}}
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {{name: alice-to-shop, namespace: default}}
spec:
  destination: {{kind: ServiceAccount, name: shop, namespace: default}}
  sources: [{{kind: ServiceAccount, name: alice, namespace: default}}]
  rules:
    - {{kind: HTTPRouteGroup, name: routes, matches: [books, host, grpc]}}
    - {{kind: TCPRoute, name: all}}
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {{name: bob-to-shop, namespace: default}}
spec:
  destination: {{kind: ServiceAccount, name: shop, namespace: default}}
  sources: [{{kind: ServiceAccount, name: bob, namespace: default}}]
  rules:
    - {{kind: HTTPRouteGroup, name: routes, matches: [read, curl]}}
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: TCPRoute
metadata: {{name: all, namespace: default}}
spec: {{matches: {{}}}}
"""

NARROWED = MESH.replace("matches: [books, host, grpc]", "matches: [host, grpc]")
assert NARROWED != MESH
PERMISSIVE = """
---
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshConfig
metadata: {name: osm-mesh-config, namespace: osm-system}
spec:
  traffic: {enablePermissiveTrafficPolicyMode: true}
"""


class Applications:
    """The shop: HTTP that answers with the path, gRPC that echoes, TCP that greets first and counts."""

    def __init__(self) -> None:
        self.greeted = 0

    async def http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests with their path."""
        while request := await reader.readuntil(b"\r\n\r\n"):
            method, path, rest = request.split(b" ", 2)
            if b"websocket" in rest:
                writer.write(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n")
                writer.write(b"connection: upgrade\r\n\r\n")
                writer.write(await reader.readline())
                await writer.drain()
                return
            head = b"HTTP/1.1 200 OK\r\nserver: shop\r\ncontent-length: %d\r\n\r\n" % len(path)
            writer.write(head if method == b"HEAD" else head + path)

    async def greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send a greeting, then echo one line."""
        self.greeted += 1
        writer.write(GREETING)
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()


async def echo(request: bytes, context: object) -> bytes:
    """Answer a gRPC call with its message."""
    del context
    return request


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop() -> Applications:
    """The applications of the shop."""
    return Applications()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory, shop: Applications) -> AsyncIterator[LiveMesh]:
    """Two real Envoys, the shop's and alice's; bob and eve call directly with their certificates."""
    async with AsyncExitStack() as ends:

        async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await shop.http(reader, writer)
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            finally:
                writer.close()

        await serve(ends, SERVER_APP, HTTP, http)
        await serve(ends, SERVER_APP, TCP, shop.greet)
        grpc_server = grpc.aio.server()
        method = grpc.unary_unary_rpc_method_handler(echo)
        grpc_server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("test.Echo", {"Say": method}),)
        )
        grpc_server.add_insecure_port(f"{SERVER_APP}:{GRPC}")
        await grpc_server.start()
        ends.push_async_callback(grpc_server.stop, 0)
        running = await LiveMesh.start(tmp_path_factory.mktemp("mesh"), MESH, ends)
        await running.envoy("shop-uuid")
        await running.envoy("alice-uuid")
        await until(lambda: _listens(ALICE, TCP))
        yield running


async def _listens(address: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(address, port)
    except OSError:
        return False
    writer.close()
    return True


async def status(
    tls: ssl.SSLContext | None, path: str, method: str = "GET", headers: tuple[tuple[str, str], ...] = ()
) -> int:
    """Call the shop's inbound port directly; return the status, or 0 without a client."""
    if tls is None:
        return 0
    reader, writer = await asyncio.open_connection(SERVER, HTTP, ssl=tls)
    names = {name.lower() for name, _ in headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if "host" not in names:
        lines.append("Host: shop")
    writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode())
    # Only the first line: Envoy holds a connection that it closes open for another second.
    answer = await reader.readline()
    writer.close()
    return int(answer.split(b" ", 2)[1])


async def reason(tls: ssl.SSLContext, path: str) -> str | None:
    """Call the shop's inbound port directly; return the denial header, or None."""
    connector = aiohttp.TCPConnector(ssl=tls)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"https://{SERVER}:{HTTP}{path}", headers={"host": "shop"}) as answer,
    ):
        return answer.headers.get(DENIED)


PATHS = ("/books", "/books/1", "/books?x=/status", "/status", "/host", "/", "/book", "/x/books")
HEADERS: tuple[tuple[tuple[str, str], ...], ...] = (
    (),
    (("Host", "shop.example"),),
    (("Host", "shopxexample"),),
    (("User-Agent", "curl/8"), ("X-Tag", "a")),
    (("User-Agent", "curl/8"), ("X-Tag", "c"), ("x-tag", "b")),
    (("User-Agent", "curl/8"), ("X-Tag", "ab")),
    (("User-Agent", "libcurl/8"), ("X-Tag", "a")),
)


async def test_envoy_and_oracle_agree_on_every_request_of_a_table(mesh: LiveMesh) -> None:
    """For every client, path, method and header set, Envoy's answer is the oracle's."""
    seen: dict[Answer, int] = {}
    for account in ("alice", "bob", "eve"):
        tls = mesh.client("default", account)
        client = ServiceIdentity(Namespace("default"), ServiceAccountName(account))
        for path, method, headers in itertools.product(PATHS, ("GET", "POST", "HEAD"), HEADERS):
            asked = Request(client, ServiceKey(Namespace("default"), ServiceName("shop")), Port(80))
            given = headers if any(name == "Host" for name, _ in headers) else (*headers, ("Host", "shop"))
            answer = decide(mesh.view, Request(client, asked.service, asked.port, method, path, given)).answer
            expected = 200 if answer is Answer.ALLOWED else 403
            assert await status(tls, path, method, headers) == expected, (account, path, method, headers)
            seen[answer] = seen.get(answer, 0) + 1
    assert seen[Answer.ALLOWED] > 30
    assert seen[Answer.REFUSED] > 30


async def test_denial_names_the_target_that_was_evaluated(mesh: LiveMesh) -> None:
    """The response names only the caller's own TrafficTarget, or that there is none.

    The access log has the same. Allowed requests, and requests refused for their path alone, have no such
    header.
    """
    alice, bob, eve = (mesh.client("default", name) for name in ("alice", "bob", "eve"))
    assert await reason(alice, "/status?a-denial") == ALICE_LACKS
    assert await reason(bob, "/host?a-denial") == "no-rule-fits default/bob-to-shop"
    assert await reason(eve, "/books?a-denial") == "no-traffic-target"
    assert await reason(alice, "/books?a-denial") is None
    assert await reason(eve, "/x%2Fa-denial") is None
    result = {}

    async def logged() -> bool:
        lines = (mesh.state / "shop-uuid" / "access.log").read_text().splitlines()
        asked = [json.loads(line) for line in lines if "a-denial" in line]
        result.update({(item["caller"], item["path"]): item for item in asked if item["caller"]})
        return len(result) == 5

    await until(logged)
    fields = ("policy", "policy_looked_for", "response_code")
    details = {
        (who.rpartition("/")[2], path): [item[name] for name in fields]
        for (who, path), item in result.items()
    }
    assert details == {
        ("alice", "/status?a-denial"): [None, "default/alice-to-shop", 403],
        ("bob", "/host?a-denial"): [None, "default/bob-to-shop", 403],
        ("eve", "/books?a-denial"): [None, "~", 403],
        ("alice", "/books?a-denial"): ["default/alice-to-shop", "default/alice-to-shop", 200],
        ("eve", "/x/a-denial"): [None, None, 400],
    }
    line = result["spiffe://cluster.local/ns/default/sa/bob", "/host?a-denial"]
    asked = question(mesh.view, {"line": json.dumps(line)}, ())
    path = {"method": "GET", "path": "/host?a-denial"}
    assert asked.query == {"from": "default/bob", "to": "default/shop:80", **path}
    explained = explain(mesh.view, read_request(asked.query, asked.headers))
    assert explained.decision.answer is Answer.REFUSED
    own = await _logged_by_alice(mesh)
    asked = question(mesh.view, {"line": json.dumps(own), "from": "default/alice"}, ())
    assert (asked.query["to"], asked.logged["response_code"]) == ("default/shop:80", "403")


async def _logged_by_alice(mesh: LiveMesh) -> dict[str, object]:
    """Send a denied request as alice; return its line in the access log of her own sidecar."""
    log, lines = mesh.state / "alice-uuid" / "access.log", list[dict[str, object]]()
    async with aiohttp.ClientSession() as session, session.get(f"http://{ALICE}:80/status?own") as answer:
        assert answer.status == 403

    async def logged() -> bool:
        lines[:] = [json.loads(line) for line in log.read_text().splitlines() if "/status?own" in line]
        return bool(lines)

    await until(logged)
    return lines[0]


async def test_disguised_paths_do_not_bypass_the_rules(mesh: LiveMesh) -> None:
    """Dot segments are resolved before the rules apply, and escaped slashes are refused."""
    alice = mesh.client("default", "alice")
    assert await status(alice, "/books/%2e%2e/status") == 403
    assert await status(alice, "/books/../status") == 403
    assert await status(alice, "/status/../books") == 200
    assert await status(alice, "/books/..%2fstatus") == 400
    assert await status(alice, "/books/..%5Cstatus") == 400


async def test_plain_text_and_foreign_certificates_are_refused(mesh: LiveMesh) -> None:
    """Without TLS, without a certificate or with a proxy certificate there is no answer."""
    reader, writer = await asyncio.open_connection(SERVER, HTTP)
    writer.write(b"GET /books HTTP/1.1\r\nHost: shop\r\n\r\n")
    assert await _rest(reader) == b""
    writer.close()
    bare = ssl.create_default_context(cadata=mesh.authority.trust_bundle().decode())
    bare.check_hostname = False
    proxy = ssl.create_default_context(cadata=mesh.authority.trust_bundle().decode())
    proxy.check_hostname = False
    folder = mesh.state / "alice-uuid"
    proxy.load_cert_chain(folder / "proxy.pem", folder / "proxy.key")
    for tls in (bare, proxy):
        with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
            await status(tls, "/books")


async def test_server_first_application_is_not_contacted_by_strangers(
    mesh: LiveMesh, shop: Applications
) -> None:
    """For a caller that no rule admits, the application does not even get a connection."""
    greeted = shop.greeted
    for account in ("eve", "bob"):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            # In TLS 1.3 the client learns of the refusal at its first read.
            reader, _ = await asyncio.open_connection(SERVER, TCP, ssl=mesh.client("default", account))
            assert await reader.read(1) != b""
            pytest.fail("a stranger was greeted")
    assert shop.greeted == greeted
    reader, writer = await asyncio.open_connection(SERVER, TCP, ssl=mesh.client("default", "alice"))
    assert await reader.readline() == GREETING
    writer.close()


async def test_alice_calls_http_grpc_and_tcp_through_both_sidecars(mesh: LiveMesh) -> None:
    """All three protocols pass from sidecar to sidecar over mTLS, and denials name the target."""
    async with aiohttp.ClientSession() as session:
        answer = await session.get(f"http://{ALICE}:80/books/1")
        assert (answer.status, await answer.text()) == (200, "/books/1")
        assert answer.headers["server"] == "shop"
        assert not [name for name in answer.headers if name.lower().startswith(("x-envoy", "via"))]
        refused = await session.get(f"http://{ALICE}:80/status")
        assert (refused.status, refused.headers[DENIED]) == (403, ALICE_LACKS)
    async with grpc.aio.insecure_channel(f"{ALICE}:{GRPC}") as channel:
        call = channel.unary_unary("/test.Echo/Say")
        assert await call(b"hello") == b"hello"
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await channel.unary_unary("/test.Other/Say")(b"hello")
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert (DENIED, ALICE_LACKS) in [*error.value.initial_metadata(), *error.value.trailing_metadata()]
    reader, writer = await asyncio.open_connection(ALICE, TCP)
    assert await reader.readline() == GREETING
    writer.write(b"echo\n")
    assert await reader.readline() == b"echo\n"
    writer.close()


async def test_rsa_keys_and_intermediate_chains_are_used_by_both_envoys(
    mesh: LiveMesh, tmp_path: Path
) -> None:
    """After each renewal, the handshake and the call succeed as before."""
    now, before = datetime.now(UTC), mesh.manager
    root = ca("root", now)
    (tmp_path / "ca").mkdir()
    for name, content in (("roots.pem", root.pem), *_files(ca("lower", now, root))):
        (tmp_path / "ca" / name).write_bytes(content)
    below = own_authority(tmp_path, TRUST_DOMAIN, now)
    cases = [(mesh.authority, KeyKind.RSA_2048), (below, KeyKind.RSA_2048), (below, KeyKind.ECDSA_P256)]
    try:
        for issuer, kind in cases:
            pairs = PairFiles(tmp_path / f"{kind}-{issuer is below}")
            mesh.manager = CertificateManager(
                issuer, pairs, timedelta(hours=1), lambda: 0.0, KeyPairOptions(kind)
            )
            mesh.publish(mesh.view)
            await _has_certificates(mesh)
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session:
                answer = await session.get(f"http://{ALICE}:80/books/1")
                assert (answer.status, await answer.text()) == (200, "/books/1")
    finally:
        mesh.manager = before
        mesh.publish(mesh.view)
        await _has_certificates(mesh)


def _files(made: Ca) -> tuple[tuple[str, bytes], ...]:
    return ("ca.pem", made.pem), ("ca.key", made.key_pem)


async def _has_certificates(mesh: LiveMesh) -> None:
    """Wait until both Envoys use the current certificates and have everything else that was published.

    The error names the Envoys' certificates and the state of their streams.
    """
    shown: dict[str, str] = {}

    async def all_shown() -> bool:
        current = {
            service_certificate.serial
            for service_certificate in map(mesh.manager.get, by_identity(mesh.view))
            if service_certificate is not None
        }
        result = []
        for uuid, envoy in mesh.envoys.items():
            answer = json.loads(await envoy.text("/certs"))["certificates"]
            serials = {c["serial_number"].lstrip("0") for one in answer for c in one["cert_chain"]}
            streams = await envoy.text("/stats?filter=control_plane|sds.*(update|version)|warming")
            shown[uuid] = f"has {sorted(serials)} and not one of {sorted(current)}; {streams}"
            result.append(bool(current & serials))
        return all(result)

    await until(all_shown, explain=lambda: shown)
    await mesh.in_force()


async def test_websocket_upgrade_passes_only_if_admitted(mesh: LiveMesh) -> None:
    """An admitted upgrade passes both sidecars, and another one gets 403."""
    for path, expected in ((b"/books/ws", b"101"), (b"/status", b"403")):
        reader, writer = await asyncio.open_connection(ALICE, 80)
        writer.write(b"GET %s HTTP/1.1\r\nHost: shop\r\nConnection: upgrade\r\n" % path)
        writer.write(b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n")
        assert (await reader.readline()).split(b" ")[1] == expected
        if expected == b"101":
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"frame\n")
            assert await reader.readline() == b"frame\n"
        writer.close()


async def test_permissive_mode_admits_the_mesh_but_no_plain_text(mesh: LiveMesh) -> None:
    """Another caller of the mesh is answered and plain text is not. Afterwards the rules apply as before."""
    eve = mesh.client("default", "eve")

    async def answered(path: str, wanted: int) -> bool:
        return await status(eve, path) == wanted

    async def greets(wanted: bool) -> bool:
        try:
            reader, writer = await asyncio.open_connection(SERVER, TCP, ssl=eve)
            greeting = await reader.readline()
        except (ssl.SSLError, ConnectionError):
            return not wanted
        writer.close()
        return (greeting == GREETING) is wanted

    mesh.apply(MESH + PERMISSIVE)
    await until(lambda: answered("/anything", 200))
    await until(lambda: greets(True))
    reader, writer = await asyncio.open_connection(SERVER, HTTP)
    writer.write(b"GET /books HTTP/1.1\r\nHost: shop\r\n\r\n")
    assert await _rest(reader) == b""
    writer.close()
    mesh.apply(MESH)
    await until(lambda: answered("/anything", 403))
    await until(lambda: greets(False))


async def test_changed_policy_applies_to_the_next_request_of_an_open_connection(mesh: LiveMesh) -> None:
    """A narrower policy refuses the next request on an open connection, and drains the connection.

    The drain is tested in tests/e2e/policy/access/test_open_connections.py. A wider policy changes no
    listener and no connection.
    """
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:

        async def answers(wanted: int) -> bool:
            answer = await session.get(f"http://{ALICE}:80/books")
            await answer.read()
            return answer.status == wanted

        assert await answers(200)
        mesh.apply(NARROWED)
        await until(lambda: answers(403))
        await mesh.in_force()
        for _ in range(2):  # a connection that is drained ends with its next answer
            assert await answers(403)
        listeners = await mesh.stat("shop-uuid", "listener_manager.listener_modified")
        connections = await mesh.stat("alice-uuid", "cluster.default/shop.8080.upstream_cx_total")
        mesh.apply(MESH)
        await until(lambda: answers(200))
        assert await mesh.stat("shop-uuid", "listener_manager.listener_modified") == listeners
        assert await mesh.stat("alice-uuid", "cluster.default/shop.8080.upstream_cx_total") == connections


async def test_rules_in_a_listener_take_effect_only_after_a_drain(mesh: LiveMesh) -> None:
    """With rules in a listener, the next request on an open connection would get the old answer.

    Envoy puts new filters into new connections only, and drains open ones, which closes them. This is why
    rules are in the route configuration.
    """
    connections = "cluster.default/shop.8080.upstream_cx_total"
    mesh.translate = rules_in_listeners.translate
    try:
        mesh.apply(MESH)
        await mesh.in_force()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:

            async def books() -> int:
                async with session.get(f"http://{ALICE}:80/books") as answer:
                    return answer.status

            async def stays_open() -> bool:
                before = await mesh.stat("alice-uuid", connections)
                answer = await books()
                return answer == 200 and await mesh.stat("alice-uuid", connections) == before

            await until(stays_open)
            before = await mesh.stat("alice-uuid", connections)
            mesh.apply(NARROWED)
            await mesh.in_force()
            assert await books() == 200
            assert await mesh.stat("alice-uuid", connections) == before

            async def refused() -> bool:
                return await books() == 403

            await until(refused)
            assert await mesh.stat("alice-uuid", connections) == before + 1
    finally:
        mesh.translate = resources
        mesh.apply(MESH)
        await mesh.in_force()


async def test_envoys_rejected_nothing_and_logged_no_warning(mesh: LiveMesh) -> None:
    """No deprecated field and no missing bound was reported during the tests above."""
    for uuid, log in mesh.logs.items():
        assert await mesh.stat(uuid, "update_rejected") == 0
        assert log.read_text() == "", uuid


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b""
