"""The pages to a browser: every answer has the frame, and nothing but one style sheet is let in."""

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
    """Serve the pages of the small mesh, one of a driver, and one that fails."""
    added = (
        site.Page("/debug/things", "all things", lambda _: _things(), PageLook(shows="all things")),
        site.Page("/debug/fails", "nothing", _fails),
    )
    app = site.application(routes.pages(reading, lambda: now), ("mesh.example",), lambda: now, lambda: added)
    async with TestClient(TestServer(app)) as found:
        yield found


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
async def test_what_goes_wrong_has_the_frame(
    client: Client, path: str, status: int, sentence: str, error: str | None
) -> None:
    """And the forms of its page; programs get what they got before."""
    response = await client.get(path, headers=BROWSER)
    text = await response.text()
    assert (response.status, response.content_type) == (status, "text/html")
    assert f'<p class="verdict bad"><span class="badge bad">error</span> {sentence}' in text
    assert 'href="/debug/certs">Certificates</a>' in text
    assert ("<form" in text) == ("?" in path)
    told = await client.get(path)
    assert told.status == status
    assert "<!doctype html>" not in await told.text()
    if error is not None:
        assert (await told.json())["error"].startswith(error)


async def test_a_browser_that_names_another_host_is_told_so(client: Client) -> None:
    """In the frame as well; what is asked for is not answered."""
    response = await client.get("/debug/certs", headers={**BROWSER, "Host": "evil.example"})
    text = await response.text()
    assert (response.status, response.content_type) == (421, "text/html")
    assert (
        "the server does not answer requests for this host: add the host name to the setting debug_hosts"
        in text
    )
    assert "uuid-1" not in text


async def test_who_would_rather_have_a_page_gets_one(client: Client) -> None:
    """As `Accept` is read (tests/unit/admin/http/test_accept.py), by the index and all pages alike."""
    said = {"text/html;q=0": "application/json", "application/json;q=0.2, TEXT/*": "text/html"}
    for accept, kind in said.items():
        for path in ("/debug", "/debug/certs", "/debug/nothing"):
            assert (await client.get(path, headers={"Accept": accept})).content_type == kind


async def test_accept_may_be_said_in_several_lines(client: Client) -> None:
    """They are one list (RFC 9110, 5.3)."""
    lines = [("Accept", "application/json;q=0.5"), ("Accept", "text/html")]
    for headers in (lines, lines[::-1]):
        assert (await client.get("/debug/certs", headers=headers)).content_type == "text/html"


@pytest.mark.parametrize(
    ("headers", "kind"), [({}, "application/json"), (BROWSER, "text/html")], ids=["program", "browser"]
)
async def test_no_method_but_get_is_served(client: Client, headers: dict[str, str], kind: str) -> None:
    """A browser is told in the frame, a program in JSON, and both which there are (RFC 9110, 15.5.6)."""
    response = await client.post("/debug/certs", headers=headers)
    assert (response.status, response.content_type) == (405, kind)
    assert response.headers["Allow"] == "GET, HEAD"
    for path in ("/debug/nothing", "/nothing"):
        response = await client.post(path, headers=headers)
        assert (response.status, response.content_type) == (404, kind)


@pytest.mark.parametrize("path", ["/nothing", "/debug/fails"])
async def test_programs_are_told_of_every_error_in_json(client: Client, path: str) -> None:
    """Also of those that no page answers."""
    assert list(await (await client.get(path)).json()) == ["error"]


async def test_nothing_but_our_style_sheet_and_script_is_let_in(client: Client) -> None:
    """By its hash, which is that of what stands in the page; forms lead here alone."""
    response = await client.get("/debug", headers=BROWSER)
    (sheet,) = re.findall("<style>(.*?)</style>", await response.text(), re.DOTALL)
    found = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    assert response.headers["Content-Security-Policy"] == (
        f"default-src 'none'; style-src 'sha256-{found}'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert " style=" not in await response.text()
    for header, said in {
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        "Referrer-Policy": "same-origin",
    }.items():
        assert response.headers[header] == said


async def test_the_index_says_what_is_wrong_first(client: Client) -> None:
    """The worst verdicts of all pages in one line; each page with its own."""
    text = await (await client.get("/debug", headers=BROWSER)).text()
    assert (
        '<p class="verdict bad"><span class="badge bad">failed</span> '
        "In what was read: 1 error, 1 group that failed.</p>" in text
    )
    assert '<a href="/debug/proxy">Proxies</a><p><span class="badge good">ok</span> 1 proxy is' in text
    assert '<a href="/debug/things">Things</a><p class="shows">all things</p>' in text


async def test_a_page_of_a_driver_is_drawn_as_it_is(client: Client) -> None:
    """With its name, what it shows, and a verdict that says how much there is."""
    text = await (await client.get("/debug/things", headers=BROWSER)).text()
    assert "<title>Things · Meshwright</title>" in text
    assert "1 things, 1 more." in text
    assert "&lt;i&gt;" in text


async def test_a_field_that_was_left_empty_is_not_asked(client: Client) -> None:
    """Of a browser's form; to a program an empty parameter is what it was."""
    asked = "/debug/explain?from=shop/buyer&to=shop/store:80&method=&path=&header=&line="
    assert (await client.get(asked, headers=BROWSER)).status == 200
    assert (await client.get(asked)).status == 400
    text = await (await client.get("/debug/xds/diff?proxy=&type=&name=", headers=BROWSER)).text()
    assert "Say which resource of which proxy." in text


async def test_one_object_and_one_identity_have_pages(client: Client) -> None:
    """What is in force and what is wrong with it; whom it may call."""
    shown = await (await client.get("/debug/policies?object=Service+shop/store")).json()
    assert [each["name"] for each in shown["objects"]] == ["store"]
    assert (await (await client.get("/debug/policies?object=K+n/x")).json())["problems"][0]["code"] == "MW1"
    one = await (await client.get("/debug/access?source=shop/buyer")).json()
    every = await (await client.get("/debug/access")).json()
    assert one["access"] == [each for each in every["access"] if each["source"] == "shop/buyer"]
    assert 0 < len(one["access"]) < len(every["access"])


@pytest.mark.parametrize("path", ["/debug/proxy", "/debug/policies", "/debug/access", "/debug/sources"])
async def test_a_server_that_has_just_begun_says_what_would_fill_its_pages(
    empty_reading: Any, now: Any, path: str
) -> None:
    """An empty table is a sentence."""
    app = site.application(routes.pages(empty_reading, lambda: now), (), lambda: now)
    async with TestClient(TestServer(app)) as client:
        text = await (await client.get(path, headers=BROWSER)).text()
    assert re.search('<p class="empty">[^<]{20,}</p>', text)
