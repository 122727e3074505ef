"""Tests of the guard: only known hosts are served, and only forms of our own pages are accepted."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.http.guard import host_of, is_of_another_site, known_hosts_only, permitted

HOST = "localhost:8080"


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST:9092", "localhost"),
        ("127.0.0.1:9092", "127.0.0.1"),
        ("[::1]:9092", "::1"),
        ("[::1]", "::1"),
        ("", ""),
    ],
)
def test_host_is_read_without_its_port(header: str, host: str) -> None:
    """A host is read without its port, from names, IPv4 addresses and bracketed IPv6 addresses."""
    assert host_of(header) == host


def test_similar_host_of_another_site_is_refused() -> None:
    """A host that only contains a permitted name is refused.

    In DNS rebinding a browser sends the attacker's name.
    """
    headers = ("evil.example:9092", "localhost.evil.example", "127.0.0.1.evil.example", "", "localhost@evil")
    assert [permitted(header, ()) for header in headers] == [False] * 5


def test_configured_host_is_permitted_in_any_case() -> None:
    """A host in the setting is permitted in upper and lower case."""
    assert permitted("Mesh.Example:9092", ("mesh.example",))


@pytest.fixture
async def client() -> AsyncIterator[TestClient[Any, Any]]:
    """Serve an endpoint that answers 403 to a request of another site, otherwise 200."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=403 if is_of_another_site(request) else 200)

    app = web.Application(middlewares=[known_hosts_only(("mesh.example",))])
    app.router.add_post("/", answer)
    async with TestClient(TestServer(app)) as test_client:
        yield test_client


@pytest.mark.parametrize(
    ("host", "headers", "is_own"),
    [
        # Clients other than browsers send no such header.
        (HOST, {}, True),
        (HOST, {"Origin": "http://localhost:8080"}, True),
        # Host and origin are compared without case (RFC 9110, 4.2.3).
        (HOST, {"Origin": "http://LocalHost:8080"}, True),
        ("LOCALHOST:8080", {"Origin": "http://localhost:8080"}, True),
        # A scheme's default port may be left out (RFC 9110, 4.2.1 and 4.2.2).
        ("localhost:80", {"Origin": "http://localhost"}, True),
        ("localhost", {"Origin": "http://localhost:80"}, True),
        ("mesh.example", {"Origin": "https://mesh.example:443"}, True),
        ("[::1]:8080", {"Origin": "http://[::1]:8080"}, True),
        # A proxy in front of the server ends TLS and forwards the host, or sets another one.
        ("mesh.example", {"Origin": "https://mesh.example"}, True),
        ("mesh.example:443", {"Origin": "https://mesh.example"}, True),
        ("mesh.example:8443", {"Origin": "https://mesh.example:8443"}, True),
        ("mesh.example", {"Origin": "https://mesh.example", "Sec-Fetch-Site": "same-origin"}, True),
        ("mesh.example", {"Origin": "https://mesh.example:8443", "Sec-Fetch-Site": "same-origin"}, True),
        ("127.0.0.1:9092", {"Origin": "https://mesh.example", "Sec-Fetch-Site": "same-origin"}, True),
        (HOST, {"Origin": "null", "Sec-Fetch-Site": "same-origin"}, True),
        # Refused: another host, port or scheme's port, or a value that is not an origin of a page.
        (HOST, {"Origin": "http://evil.example"}, False),
        (HOST, {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, False),
        (HOST, {"Origin": "http://evil.example:8080"}, False),
        (HOST, {"Origin": "http://localhost.evil.example:8080"}, False),
        (HOST, {"Origin": "http://localhost:8080@evil.example"}, False),
        (HOST, {"Origin": "http://localhost:3000"}, False),
        (HOST, {"Origin": "http://localhost"}, False),
        ("localhost", {"Origin": "http://localhost:443"}, False),
        ("127.0.0.1:9092", {"Origin": "https://mesh.example"}, False),
        (HOST, {"Origin": "null"}, False),
        (HOST, {"Origin": ""}, False),
        (HOST, {"Origin": "http://localhost:x"}, False),
        (HOST, {"Origin": "http://localhost:8080 http://evil.example"}, False),
        (HOST, {"Origin": "chrome-extension://localhost:8080"}, False),
        (HOST, {"Origin": "http://localhost:8080", "Sec-Fetch-Site": "cross-site"}, False),
        (HOST, {"Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-site"}, False),
        (HOST, {"Sec-Fetch-Site": "cross-site"}, False),
        ("mesh.example", {"Origin": "https://mesh.example", "Sec-Fetch-Site": "same-site"}, False),
    ],
)
async def test_only_requests_of_our_own_origin_are_accepted(
    client: TestClient[Any, Any], host: str, headers: dict[str, str], is_own: bool
) -> None:
    """Requests of our own origin are accepted, also behind a proxy that ends TLS.

    A page can set neither of the headers.
    """
    answer = await client.post("/", headers={"Host": host} | headers)
    assert answer.status == (200 if is_own else 403)


async def test_two_origin_headers_are_refused(client: TestClient[Any, Any]) -> None:
    """A request with two `Origin` headers is refused, because a browser sends at most one."""
    origins = [("Host", HOST), ("Origin", "http://localhost:8080"), ("Origin", "http://evil.example")]
    assert (await client.post("/", headers=origins)).status == 403
