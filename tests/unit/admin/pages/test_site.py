"""Tests of the pages for browsers: the frame of every answer, and the Content-Security-Policy."""

import base64
import hashlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.pages import routes, site

Client = TestClient[Any, Any]
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def _fails(_request: web.Request) -> dict[str, Any]:
    raise ZeroDivisionError


@pytest.fixture
async def client(reading: Any, now: Any) -> AsyncIterator[Client]:
    """Serve the pages of the small mesh, one page of a driver, and one page that fails."""
    added = (
        site.Page("/debug/things", "all things", lambda _: _things(), PageLook(shows="all things")),
        site.Page("/debug/fails", "nothing", _fails),
    )
    app = site.application(routes.pages(reading, lambda: now), ("mesh.example",), lambda: now, lambda: added)
    async with TestClient(TestServer(app)) as test_client:
        yield test_client


async def _things() -> dict[str, Any]:
    return {"things": [{"name": "<i>"}], "more": {"a": None}}


@pytest.mark.parametrize(
    ("path", "status", "sentence", "error"),
    [
        ("/debug/nothing", 404, "there is no page /debug/nothing", "there is no page /debug/nothing"),
        (
            "/debug/proxy?proxy=%3Cb%3E",
            404,
            "proxy &#x27;&lt;b&gt;&#x27; does not exist",
            "proxy '<b>' does not exist",
        ),
        ("/debug/explain?from=x", 400, "from is &#x27;x&#x27;: must be", "from is 'x': must be"),
        (
            "/debug/policies?object=Service+a/b",
            404,
            "object &#x27;Service a/b&#x27; does not exist in any source: must be",
            "object 'Service a/b' does not exist in any source: must be",
        ),
        ("/debug/access?source=a/b", 404, "no workload has the identity", "no workload has the identity"),
        ("/nothing", 404, "/nothing: Not Found", None),
        ("/debug/fails", 500, "/debug/fails failed with an internal error: see the server log", None),
    ],
)
async def test_error_pages_have_the_frame(
    client: Client, path: str, status: int, sentence: str, error: str | None
) -> None:
    """An error has the frame, and the form of its page if there is one; programs get JSON without HTML."""
    response = await client.get(path, headers=BROWSER)
    text = await response.text()
    assert (response.status, response.content_type) == (status, "text/html")
    assert f'<p class="verdict bad"><span class="badge bad">error</span> {sentence}' in text
    assert 'href="/debug/certs">Certificates</a>' in text
    assert ("<form" in text) == ("?" in path)
    client_response = await client.get(path)
    assert client_response.status == status
    assert "<!doctype html>" not in await client_response.text()
    if error is not None:
        assert (await client_response.json())["error"].startswith(error)


async def test_unknown_host_gets_421_in_the_frame(client: Client) -> None:
    """A browser with an unknown host gets 421 in the frame and none of the requested content."""
    response = await client.get("/debug/certs", headers={**BROWSER, "Host": "evil.example"})
    text = await response.text()
    assert (response.status, response.content_type) == (421, "text/html")
    assert (
        "the server does not answer requests for this host: add the host name to the setting debug_hosts"
        in text
    )
    assert "uuid-1" not in text


async def test_accept_chooses_html_or_json_on_all_pages(client: Client) -> None:
    """The index, pages and errors all choose the format by `Accept`.

    The rules are in tests/unit/admin/http/test_accept.py.
    """
    answer = {"text/html;q=0": "application/json", "application/json;q=0.2, TEXT/*": "text/html"}
    for accept, kind in answer.items():
        for path in ("/debug", "/debug/certs", "/debug/nothing"):
            assert (await client.get(path, headers={"Accept": accept})).content_type == kind


async def test_several_accept_headers_are_one_list(client: Client) -> None:
    """Several `Accept` lines are one list (RFC 9110, 5.3), in any order."""
    lines = [("Accept", "application/json;q=0.5"), ("Accept", "text/html")]
    for headers in (lines, lines[::-1]):
        assert (await client.get("/debug/certs", headers=headers)).content_type == "text/html"


@pytest.mark.parametrize(
    ("headers", "kind"), [({}, "application/json"), (BROWSER, "text/html")], ids=["program", "browser"]
)
async def test_post_gets_405_with_the_allowed_methods(
    client: Client, headers: dict[str, str], kind: str
) -> None:
    """POST to a page gets 405 with `Allow` (RFC 9110, 15.5.6), in HTML or JSON; an unknown path gets 404."""
    response = await client.post("/debug/certs", headers=headers)
    assert (response.status, response.content_type) == (405, kind)
    assert response.headers["Allow"] == "GET, HEAD"
    for path in ("/debug/nothing", "/nothing"):
        response = await client.post(path, headers=headers)
        assert (response.status, response.content_type) == (404, kind)


@pytest.mark.parametrize("path", ["/nothing", "/debug/fails"])
async def test_programs_get_every_error_in_json(client: Client, path: str) -> None:
    """Errors are JSON for programs, also outside `/debug` and for internal errors."""
    assert list(await (await client.get(path)).json()) == ["error"]


async def test_content_security_policy_allows_only_our_style_sheet_and_script(client: Client) -> None:
    """The style sheet is allowed by the hash of its text in the page. Forms may lead to this server only."""
    response = await client.get("/debug", headers=BROWSER)
    (sheet,) = re.findall("<style>(.*?)</style>", await response.text(), re.DOTALL)
    result = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    assert response.headers["Content-Security-Policy"] == (
        f"default-src 'none'; style-src 'sha256-{result}'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert " style=" not in await response.text()
    for header, text in {
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        "Referrer-Policy": "same-origin",
    }.items():
        assert response.headers[header] == text


async def test_index_shows_the_worst_verdicts_first(client: Client) -> None:
    """The index has the worst verdicts of all pages in one line, and each page with its own verdict."""
    text = await (await client.get("/debug", headers=BROWSER)).text()
    assert (
        '<p class="verdict bad"><span class="badge bad">failed</span> '
        "Problems: 1 error, 1 failed group.</p>" in text
    )
    assert '<a href="/debug/proxy">Proxies</a><p><span class="badge good">ok</span> 1 proxy is' in text
    assert '<a href="/debug/things">Things</a><p class="shows">all things</p>' in text


async def test_page_of_a_driver_is_shown_with_its_name_and_counts(client: Client) -> None:
    """A driver's page has its title and a verdict that counts its entries, and its values are escaped."""
    text = await (await client.get("/debug/things", headers=BROWSER)).text()
    assert "<title>Things · Meshwright</title>" in text
    assert "1 things, 1 more." in text
    assert "&lt;i&gt;" in text


async def test_empty_field_of_a_browser_s_form_is_ignored(client: Client) -> None:
    """A browser sends empty fields of a form, which are ignored; from a program they are values."""
    asked = "/debug/explain?from=shop/buyer&to=shop/store:80&method=&path=&header=&line="
    assert (await client.get(asked, headers=BROWSER)).status == 200
    assert (await client.get(asked)).status == 400
    text = await (await client.get("/debug/xds/diff?proxy=&type=&name=", headers=BROWSER)).text()
    assert "Choose a proxy and a resource." in text


async def test_one_object_and_one_identity_can_be_selected(client: Client) -> None:
    """The pages of policies and access can be limited to one object and to one calling identity."""
    shown = await (await client.get("/debug/policies?object=Service+shop/store")).json()
    assert [item["name"] for item in shown["objects"]] == ["store"]
    assert (await (await client.get("/debug/policies?object=K+n/x")).json())["problems"][0]["code"] == "MW1"
    one = await (await client.get("/debug/access?source=shop/buyer")).json()
    every = await (await client.get("/debug/access")).json()
    assert one["access"] == [item for item in every["access"] if item["source"] == "shop/buyer"]
    assert 0 < len(one["access"]) < len(every["access"])


@pytest.mark.parametrize("path", ["/debug/proxy", "/debug/policies", "/debug/access", "/debug/sources"])
async def test_empty_pages_say_how_to_fill_them(empty_reading: Any, now: Any, path: str) -> None:
    """On a server that has just started, an empty table is replaced by a sentence."""
    app = site.application(routes.pages(empty_reading, lambda: now), (), lambda: now)
    async with TestClient(TestServer(app)) as client:
        text = await (await client.get(path, headers=BROWSER)).text()
    assert re.search('<p class="empty">[^<]{20,}</p>', text)
