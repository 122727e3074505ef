"""Tests of HTTP variants: old versions, many headers, unusual methods and hosts, escaped slashes."""

import asyncio
import ssl

import pytest

from catalog.oracle.request.methods import IN_HTTP1
from tests.e2e.policy.applications import ADMIN, HTTP
from tests.e2e.policy.calls import raw
from tests.e2e.policy.policies import ALL, EVERYTHING, Document, http, path, routes, split, target
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.topology import WORKLOADS, documents

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

OPEN = (*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
SLASHES = "meshwright.dev/escaped-slashes"


def get(written: str) -> str:
    """Return the text of a GET request."""
    return f"GET {written} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def keeping(*services: str) -> list[Document]:
    """Return the Services of these names with the annotation that keeps escaped slashes."""
    result = [
        document
        for document in documents()
        if (document["kind"], document["metadata"]["name"]) in _of(services)
    ]
    return [{**item, "metadata": {**item["metadata"], "annotations": {SLASHES: "keep"}}} for item in result]


def _of(services: tuple[str, ...]) -> set[tuple[str, str]]:
    return {("Service", service) for service in services}


def _ways(mesh: PolicyMesh) -> tuple[tuple[tuple[str, int], ssl.SSLContext | None], ...]:
    """Return the client's ways to v1: through its own sidecar, and directly with its certificate."""
    past = (WORKLOADS["v1"].address, HTTP)
    return ((mesh.place("client", "v1", 80), None), (past, mesh.certificate("client")))


@pytest.mark.parametrize("host", ["", "Host: shop.example\r\n"], ids=["no-host", "host"])
async def test_http_1_0_passes_both_sidecars_and_closes_the_connection(mesh: PolicyMesh, host: str) -> None:
    """A request with or without a host header is answered, and the connection ends with the answer."""
    await mesh.enforce(*OPEN)
    head, body = await raw(mesh.place("client", "v1", 80), f"GET /old HTTP/1.0\r\n{host}\r\n")
    assert head.startswith(("HTTP/1.0 200", "HTTP/1.1 200")), head
    assert body == f"{HTTP} /old"


async def test_http_1_0_keep_alive_reuses_the_connection(mesh: PolicyMesh) -> None:
    """The second request uses the same connection, as with `ab -k`."""
    await mesh.enforce(*OPEN)
    reader, writer = await asyncio.open_connection(*mesh.place("client", "v1", 80))
    async with asyncio.timeout(30):
        for _ in range(2):
            writer.write(b"GET /again HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            assert " 200 " in head.splitlines()[0], head
            assert "connection: keep-alive" in head
            answer = f"{HTTP} /again".encode()
            assert await reader.readexactly(len(answer)) == answer
    writer.close()


async def test_http_1_0_requests_are_subject_to_host_rules(mesh: PolicyMesh) -> None:
    """A request that is not admitted gets 403.

    Without a host header, host rules are applied to the service's name.
    """
    named = routes("g", {"headers": [{"host": r"v1\.shop"}]})
    await mesh.enforce(named, target("t", "shop/v1", ("shop/client",), http("g")))
    for host, status in (("", "200"), ("Host: v1.shop\r\n", "200"), ("Host: v1.other\r\n", "403")):
        head, _ = await raw(mesh.place("client", "v1", 80), f"GET / HTTP/1.0\r\n{host}\r\n")
        assert head.split()[1] == status, head


@pytest.mark.parametrize(("count", "status"), [(99, 200), (150, 200), (900, 200), (1100, 431)])
async def test_request_with_up_to_1000_headers_passes_both_sidecars(
    mesh: PolicyMesh, count: int, status: int
) -> None:
    """A request with more headers gets 431."""
    await mesh.enforce(*OPEN)
    many = {f"x-{number}": "y" for number in range(count)}
    assert (await mesh.get("client", "v1", headers=many)).status == status


@pytest.mark.parametrize(("count", "status"), [(150, 200), (900, 200), (1100, 502)])
async def test_response_with_up_to_1000_headers_passes_both_sidecars(
    mesh: PolicyMesh, count: int, status: int
) -> None:
    """A response with more headers becomes 502."""
    await mesh.enforce(*OPEN)
    assert (await mesh.get("client", "v1", f"/headers/{count}")).status == status


async def test_only_methods_known_to_envoy_reach_the_application(mesh: PolicyMesh) -> None:
    """A sidecar answers other HTTP/1 methods itself; only an application's response names its server."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    others = ("MKTICKET", "get", "GETX", "M-SEARCH", "MSEARCH", "LABEL", "PRI")
    passed = set()
    for method in (
        *(IN_HTTP1 - {"HEAD", "CONNECT"}),
        *others,
    ):  # a response to HEAD has no body, whatever its length header
        about = "Host: shop\r\nContent-Type: a/b\r\nContent-Length: 0\r\nConnection: close"
        sent = f"{method} / HTTP/1.1\r\n{about}\r\n\r\n"
        head, _ = await raw(mesh.place("client", "v1", 80), sent)
        if "\nserver:" in head.lower():
            passed.add(method)
    assert passed == IN_HTTP1 - {"HEAD", "CONNECT"}


@pytest.mark.parametrize(
    ("host", "statuses"),
    [
        ("shop", [200, 403]),
        ("SHOP.", [200, 403]),
        ("shop:8080", [200, 200]),
        ("shop:9090", [200, 403]),
        ("shop.:8080", [200, 403]),
        ("other:8080", [403, 403]),
    ],
)
async def test_host_rule_with_a_port_matches_only_that_port(
    mesh: PolicyMesh, host: str, statuses: list[int]
) -> None:
    """A rule without a port matches the host with any port, in upper case and with a trailing dot.

    A rule with a port matches only a host with exactly this port.
    """
    result = []
    for regex in ("shop", "shop:8080"):
        match = {"name": "some", "pathRegex": ".*", "methods": ["*"], "headers": [{"host": regex}]}
        await mesh.enforce(routes("g", match), target("t", "shop/v1", ("shop/client",), http("g")))
        sent = f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        head, _ = await raw(mesh.place("client", "v1", 80), sent)
        result.append(int(head.split(" ")[1]))
    assert result == statuses


async def test_escaped_slashes_are_refused_unless_kept(mesh: PolicyMesh) -> None:
    """If the Service keeps escaped slashes, the application gets the path as written."""
    written = "/projects/group%2Fname/x%5cy"
    place = mesh.place("client", "v1-again", 81)
    await mesh.enforce(*OPEN)
    assert (await raw(place, get(written)))[0].startswith("HTTP/1.1 400")
    await mesh.enforce(*OPEN, *keeping("v1-again"))
    head, body = await raw(place, get(written))
    assert (head.split("\r\n")[0], body) == ("HTTP/1.1 200 OK", f"{ADMIN} {written}")


async def test_escaped_slashes_must_be_kept_by_the_called_service(mesh: PolicyMesh) -> None:
    """The called Service must keep them. At the server, one of the Services that share the port is enough."""

    async def status(service: str) -> str:
        # A connection between the sidecars that began before the change ends with its next answer.
        asked = [await raw(mesh.place("client", service, 81), get("/a%2fb")) for _ in range(2)]
        return asked[-1][0].split(" ")[1]

    apex = split("s", "root", {"v1": 1})
    seen = []
    for kept in (("web",), ("root",), ("root", "v1")):  # v1 is behind web too
        await mesh.enforce(*OPEN, apex, *keeping(*kept))
        seen.append([await status(item) for item in ("web", "v1", "root")])
    assert seen == [["200", "400", "400"], ["400", "400", "400"], ["400", "200", "200"]]


ESCAPES = (
    "/books/..%2fadmin",
    "/books/..%2Fadmin",
    "/books/%2e%2e%2fadmin",
    "/books/.%2e%5Cadmin",
    "/books%2f..%2fadmin",
    "/books/x%2f../admin",
    "/books/x%2f..",
    "/books/x%5c.",
    "/books/x%2f%2E%2E%5cadmin",
    "/books/..%2fadmin?x=1",
    "/books/..\\..%2fadmin",
    "/books/\N{LATIN SMALL LETTER E WITH ACUTE}/..%2fadmin",
)
HARMLESS = (
    "/books/a%2fb",
    "/books/a%2fb?x=..%2fadmin",
    "/books/...%2fb",
    "/books/x..%2fb",
    "/books/%2f.b",
    "/books/%252e%252e%252fb",
)


async def test_rules_are_not_bypassed_by_escaped_slashes(mesh: PolicyMesh) -> None:
    """A path that is a different path after unescaping is refused.

    This holds also for a client that bypasses its own sidecar.
    """
    books = (routes("g", path("/books.*")), target("t", "shop/v1", ("shop/client",), http("g")))
    await mesh.enforce(*books, *keeping("v1"))
    for escape in ESCAPES:
        for place, tls in _ways(mesh):
            head, body = await raw(place, get(escape), tls)
            assert head == "" or head.split()[1] in ("400", "403"), (escape, head, body)
    for item in HARMLESS:
        assert (await mesh.get("client", "v1", item)).status == 200, item


async def test_rules_match_escaped_slashes_as_written(mesh: PolicyMesh) -> None:
    """In a regular expression, a kept escaped slash does not match a slash, in upper or lower case."""
    one = (routes("g", path("/books/[^/]+")), target("t", "shop/v1", ("shop/client",), http("g")))
    await mesh.enforce(*one, *keeping("v1"))
    seen = [
        (await mesh.get("client", "v1", item)).status for item in ("/books/a%2Fb", "/books/a/b", "/a%2fb")
    ]
    assert seen == [200, 403, 403]


async def test_open_connection_is_safe_after_its_service_stops_keeping_slashes(mesh: PolicyMesh) -> None:
    """A connection from before the change keeps the old setting, and even then rules cannot be bypassed."""
    books = (routes("g", path("/books.*")), target("t", "shop/v1", ("shop/client",), http("g")))
    await mesh.enforce(*books, *keeping("v1"))
    place = (WORKLOADS["v1"].address, HTTP)
    reader, writer = await asyncio.open_connection(*place, ssl=mesh.certificate("client"))
    await mesh.enforce(*books)
    async with asyncio.timeout(30):
        writer.write(get("/books/..%2fadmin").encode())
        assert (await reader.readuntil(b"\r\n")).decode() == "HTTP/1.1 400 Bad Request\r\n"
    writer.transport.abort()
