"""Tests of a running server's JSON API against its own OpenAPI document."""

import asyncio
import copy
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import hypothesis
import pytest
import pytest_asyncio
import schemathesis
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from meshwright.admin.api import routes
from meshwright.admin.pages.proxies import pushes as shown_pushes
from tests.feature.identity.conftest import Server
from tests.feature.pages.conftest import ONE, STRANGER, TWO, mesh

__all__ = ["mesh"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASKED = {
    "/overview": "",
    "/proxies": "",
    "/proxies/{name}": "",
    "/proxies/{name}/pushes": "",
    "/proxies/{name}/configuration": "",
    "/streams": "?proxy=two",
    "/published": "",
    "/certificates": "",
    "/policies": "",
    "/explain": "?from=shop/buyer&to=shop/shop:80&path=/sell&header=a: b&header=c: d",
    "/connectivity": "?from=shop/buyer&to=shop/shop:80&path=/sell&header=a: b&header=c: d",
    "/sources": "",
    "/hosts": "?namespace=shop",
    "/config": "",
    "/loop": "",
    "/topology": "",
    **{
        f"/stat/{of}": "?window=300&namespace=shop"
        for of in ("services", "proxies", "edges", "routes", "backends")
    },
}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest_asyncio.fixture(loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """An ordinary HTTP client."""
    async with aiohttp.ClientSession() as opened:
        yield opened


async def _get(
    session: aiohttp.ClientSession, mesh: Server, path: str, **headers: str
) -> tuple[int, dict[str, Any]]:
    address = f"http://{mesh.bound.debug}/api/v1{path}"
    async with session.get(address, headers=headers) as answer:
        assert answer.content_type == "application/json"
        return answer.status, await answer.json()


def _closed(schema: Any) -> Any:
    """Return a copy of a schema that permits no undeclared properties."""
    match schema:
        case {"properties": dict()}:
            inner = {name: _closed(item) for name, item in schema["properties"].items()}
            return schema | {"properties": inner, "additionalProperties": False}
        case dict():
            return {name: _closed(item) for name, item in schema.items()}
        case list():
            return [_closed(item) for item in schema]
        case _:
            return schema


def _wrong(document: dict[str, Any], path: str, answer: object) -> list[str]:
    """Return the violations of the documented schema in an answer, including undeclared fields."""
    result = document["paths"][f"/api/v1{path}"]["get"]["responses"]["200"]["content"]
    validator = Draft202012Validator(
        _closed(result["application/json"]["schema"]), format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    return [iter_error.message for iter_error in validator.iter_errors(answer)]


def _fields(value: object, at: str = "") -> Iterator[str]:
    """Yield the path of every field of an answer."""
    match value:
        case dict():
            for name, item in value.items():
                yield f"{at}.{name}"
                yield from _fields(item, f"{at}.{name}")
        case list():
            for item in value:
                yield from _fields(item, f"{at}[]")
        case _:
            pass


async def test_every_response_matches_the_openapi_document(
    mesh: Server, session: aiohttp.ClientSession
) -> None:
    """Every path has exactly the documented fields, at the debug address and on the socket."""
    _, document = await _get(session, mesh, "/openapi.json")
    _, index = await _get(session, mesh, "")
    there = sorted(f"/api/v1{item}" for item in (*ASKED, "/events", "/try"))
    assert sorted(index) == sorted(document["paths"]) == there
    for path, query in ASKED.items():
        for name in (ONE, TWO, STRANGER) if "{name}" in path else ("",):
            asked = path.replace("{name}", name) + query
            status, answer = await _get(session, mesh, asked)
            assert (path, status, _wrong(document, path, answer)) == (path, 200, [])
            over_socket = await mesh.ask("GET", f"/api/v1{asked}")
            assert set(_fields(over_socket)) == set(_fields(answer))


async def test_missing_or_undeclared_field_violates_the_document(
    mesh: Server, session: aiohttp.ClientSession
) -> None:
    """A missing field and an undeclared nested field are both violations, so the check above can fail."""
    _, document = await _get(session, mesh, "/openapi.json")
    _, right = await _get(session, mesh, f"/proxies/{TWO}/pushes")
    few, many = copy.deepcopy(right), copy.deepcopy(right)
    del few["pushes"][0]["trigger"]["why"]
    many["pushes"][0]["trigger"]["pid"] = 1
    for wrong, name in ((few, "'why'"), (many, "'pid'")):
        (result,) = _wrong(document, "/proxies/{name}/pushes", wrong)
        assert name in result


async def test_response_without_a_required_field_is_an_internal_error(
    mesh: Server, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that drops a field answers with status 500, which schemathesis reports."""
    whole = shown_pushes.push

    def less(shown: Any, kept: Any) -> dict[str, Any]:
        return {name: item for name, item in whole(shown, kept).items() if name != "nonce"}

    monkeypatch.setattr("meshwright.admin.pages.proxies.proxy.push", less)
    path = f"/proxies/{TWO}/pushes"
    failed = {"error": f"/api/v1{path} failed with an internal error: see the server log"}
    assert await _get(session, mesh, path) == (500, failed)


async def test_api_reports_the_same_states_as_the_debug_pages(
    mesh: Server, session: aiohttp.ClientSession
) -> None:
    """Proxy states, rejections, streams and the overview's worst verdict agree with the debug pages."""
    _, result = await _get(session, mesh, "/proxies")
    of_all = {proxy["cn"]: proxy["sync"] for proxy in (await mesh.ask("GET", "/debug/proxy"))["proxies"]}
    assert {proxy["name"]: proxy["sync"] for proxy in result["proxies"]} == of_all
    _, one = await _get(session, mesh, f"/proxies/{ONE}")
    assert [item.partition(":")[0] for item in one["rejected"]] == ["route rds-outbound.shop/shop|80"]
    _, streams = await _get(session, mesh, "/streams?proxy=one")
    assert [stream["proxy"] for stream in streams["streams"]] == [ONE]
    _, every = await _get(session, mesh, "/streams")
    assert {stream["proxy"] for stream in every["streams"]} == {ONE, STRANGER, TWO}
    _, overview = await _get(session, mesh, "/overview")
    verdicts = {part["part"]: part["verdict"] for part in overview["parts"]}
    assert verdicts == {"sources": "warning", "policies": "failed", "proxies": "failed", "certificates": "ok"}
    worst = next(part for part in overview["parts"] if part["verdict"] == "failed")
    assert (overview["verdict"], overview["sentence"]) == ("failed", worst["sentence"])


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/proxies/nobody", 404, "proxy 'nobody' does not exist"),
        ("/proxies?namespace=shop", 400, "unknown parameter 'namespace': this path does not take parameters"),
        ("/policies?object=a&object=b", 400, "object must be given only once"),
        ("/policies?object=x", 404, "object 'x' does not exist in any source"),
        ("/explain?from=shop/buyer", 400, "parameter to is missing"),
        ("/explain?line=x", 400, "the line must be one of a sidecar's access log"),
        ("/connectivity?to=shop/shop:80", 400, "parameter from is missing"),
        ("/connectivity?from=shop/buyer&to=shop/none:80", 404, "shop/none"),
        ("/hosts", 400, "parameter namespace is missing"),
        ("/streams?proxy=nobody", 404, "proxy 'nobody' does not exist"),
        ("/proxies/nobody/configuration", 404, "proxy 'nobody' does not exist"),
        ("/topology?by=x", 400, "by is 'x': must be service or namespace"),
        ("/topology?by=namespace&namespace=shop", 400, "by=namespace shows the whole mesh"),
        ("/topology?service=shop/none", 404, "service 'shop/none' does not exist"),
        ("/explain?from=shop/buyer&to=x%0Ay", 400, "to is 'x\\ny'"),
        ("/nothing", 404, "there is nothing at /api/v1/nothing"),
    ],
)
async def test_invalid_request_is_refused_with_its_reason(
    mesh: Server, session: aiohttp.ClientSession, path: str, status: int, words: str
) -> None:
    """An unknown path, object or parameter is refused with a message that names the problem."""
    number, answer = await _get(session, mesh, path)
    assert (number, list(answer)) == (status, ["error"])
    assert words in answer["error"]


async def test_request_with_another_host_header_is_refused(
    mesh: Server, session: aiohttp.ClientSession
) -> None:
    """A foreign `Host` gets status 421, which prevents DNS rebinding by a page of another site."""
    for path in ASKED:
        assert (await _get(session, mesh, path, Host="evil.example"))[0] == 421


# Hypothesis warns when the state of `random` changes during a draw. Draws are made in a thread here, and the
# server in the same process draws its own jitter meanwhile. The other warning is of schemathesis' own set-up.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
@pytest.mark.filterwarnings("ignore:It looks like `register_random` was passed an object")
async def test_generated_requests_get_documented_responses(mesh: Server) -> None:
    """Requests that schemathesis generates from the document get only documented responses."""
    address = f"http://{mesh.bound.debug}"

    def all_of_it() -> int:
        document = schemathesis.openapi.from_url(f"{address}/api/v1/openapi.json")
        schema = document.exclude(path="/api/v1/events")  # which does not end
        tried = 0
        for item in schema.get_all_operations():
            operation: Any = item.ok()  # type: ignore[union-attr]  # else it raises: the document is wrong

            @hypothesis.settings(max_examples=25, deadline=None, derandomize=True, database=None)
            @hypothesis.given(case=operation.as_strategy())
            def holds(case: Any) -> None:
                nonlocal tried
                tried += 1
                case.call_and_validate(base_url=address, checks=CHECKS, timeout=20)

            holds()
        return tried

    assert await asyncio.to_thread(all_of_it) > 5 * len(routes.ROUTES)
