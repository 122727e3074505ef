"""Tests of the manifest form over HTTP: the origin check, and the status of each refusal."""

import io
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import FormData
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.pages import routes, site
from meshwright.admin.pages.trial_runner import BYTES, ELSEWHERE, TrialRunner
from meshwright.controller.sources import as_read

Client = TestClient[Any, Any]
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PATH = "/debug/try"
HOST = "localhost:8080"


@pytest.fixture
async def client(reading: Any, now: Any) -> AsyncIterator[Client]:
    """Serve the form over the small mesh."""
    pages = routes.pages(reading, lambda: now, TrialRunner(reading, as_read))
    async with TestClient(TestServer(site.application(pages, ("mesh.example",), lambda: now))) as test_client:
        yield test_client


@pytest.mark.parametrize(
    ("host", "origin", "is_own"),
    [
        (HOST, "http://LocalHost:8080", True),
        ("mesh.example", "https://mesh.example", True),
        ("mesh.example", "https://evil.example", False),
        (HOST, "http://localhost:3000", False),
    ],
)
@pytest.mark.parametrize("headers", [{}, BROWSER], ids=["program", "browser"])
async def test_form_is_accepted_from_our_own_pages_only(
    client: Client, host: str, origin: str, headers: dict[str, str], is_own: bool
) -> None:
    """The form is accepted from our own origin only (tests/unit/admin/http/test_guard.py)."""
    response = {"Host": host, "Origin": origin} | headers
    answer = await client.post(PATH, data={"manifests": ""}, headers=response)
    assert answer.status == (200 if is_own else 403)
    assert (ELSEWHERE in await answer.text()) is not is_own
    assert answer.content_type == ("text/html" if headers else "application/json")


async def test_browser_sends_the_origin_with_our_form(client: Client) -> None:
    """`Referrer-Policy: same-origin` makes a browser send the `Origin` of the form.

    Over plain HTTP to a named host it sends no Sec-Fetch-Site (Fetch Metadata, 2), and under `no-referrer`
    the `Origin` of a form would be `null` (Fetch, "append a request Origin header").
    """
    assert (await client.get(PATH, headers=BROWSER)).headers["Referrer-Policy"] == "same-origin"


@pytest.mark.parametrize("headers", [{}, BROWSER], ids=["program", "browser"])
async def test_too_long_manifests_get_413_and_stay_in_the_form(
    client: Client, headers: dict[str, str]
) -> None:
    """Too long manifests get 413 (RFC 9110, 15.5.14), and the text stays in the answer if it was read."""
    given = "#" * (BYTES + 1)
    answer = await client.post(PATH, data={"manifests": given}, headers=headers)
    text = await answer.text()
    assert (answer.status, given in text, f"longer than {BYTES} bytes" in text) == (413, True, True)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    body = io.BytesIO(b"manifests=" + b"a" * 2_000_000)
    far = await client.post(PATH, data=body, headers=form | headers)
    assert (far.status, far.content_type) == (413, answer.content_type)
    assert f"longer than {BYTES} bytes" in await far.text()
    if not headers:
        sentence = f"the manifests are longer than {BYTES} bytes: use `meshwright diff`"
        assert await answer.json() == {"error": sentence, "manifests": given}


async def test_trial_before_the_first_reading_gets_503(empty_reading: Any, now: Any) -> None:
    """A trial before the server has read the mesh gets 503, like that of the API."""
    pages = routes.pages(empty_reading, lambda: now, TrialRunner(empty_reading, as_read))
    async with TestClient(TestServer(site.application(pages, (), lambda: now))) as client:
        answer = await client.post(PATH, data={"manifests": "a"})
        assert (answer.status, await answer.json()) == (
            503,
            {
                "error": "the server has not read its sources yet: try again in a few seconds",
                "manifests": "a",
            },
        )


@pytest.mark.parametrize(
    ("data", "sent", "status"),
    [
        (b'{"manifests": ""}', "application/json", 415),
        (b"manifests=", "text/plain", 415),
        (b"manifests=", "application/x-www-form-urlencoded", 200),
        (b"kind: Service", "application/x-www-form-urlencoded", 400),
        (b"", "application/x-www-form-urlencoded", 400),
        (b"manifests=\xff", "application/x-www-form-urlencoded", 400),
        (b"manifests=", "application/x-www-form-urlencoded; charset=nothing", 400),
        (b"nothing of it", "multipart/form-data; boundary=a", 400),
    ],
)
async def test_request_without_a_valid_form_gets_an_error(
    client: Client, data: bytes, sent: str, status: int
) -> None:
    """A body that is not a valid form gets 415 or 400.

    It is not treated as empty manifests, which would change nothing.
    """
    answer = await client.post(PATH, data=data, headers={"Content-Type": sent})
    assert (answer.status, answer.content_type) == (status, "application/json")
    assert ("error" in await answer.json()) == (status != 200)


async def test_uploaded_file_gets_400(client: Client) -> None:
    """An uploaded file gets 400, because manifests must be text."""
    form = FormData()
    form.add_field("manifests", b"a", filename="a.yaml")
    answer = await client.post(PATH, data=form)
    assert (answer.status, await answer.json()) == (400, {"error": "manifests must be text, not a file"})
