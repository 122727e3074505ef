"""Manifests are tried on a running server: whom they would concern is told, and nothing is applied."""

import io
import json
from typing import Any

import aiohttp
import pytest
from jsonschema import Draft202012Validator

from meshwright.admin.api.trial import TRIED
from meshwright.admin.pages.trial_runner import BYTES
from tests.feature.identity.conftest import Server
from tests.feature.pages.conftest import TWO, mesh
from tests.meshes import texts

__all__ = ["mesh"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _try(server: Server, body: object, **headers: str) -> tuple[int, dict[str, Any]]:
    address = f"http://{server.bound.debug}/api/v1/try"
    said = {"Content-Type": "application/json"} | headers
    data = io.BytesIO(json.dumps(body).encode())
    async with aiohttp.ClientSession() as session, session.post(address, data=data, headers=said) as found:
        return found.status, await found.json()


async def test_who_would_be_concerned_is_told_and_nothing_applied(mesh: Server) -> None:
    """A route of which a match is added: proxies, resource and lines; all is as it was afterwards."""
    before = await mesh.ask("GET", "/debug/published")
    match = texts.match("buy", "/sold-only-when-tried")
    status, found = await _try(mesh, {"manifests": texts.route_group("routes", match)})
    assert status == 200
    Draft202012Validator(TRIED).validate(found)
    assert (found["objects"], found["problems"], found["new"], found["gone"]) == (1, [], [], [])
    changed = [each for entry in found["changed"] for each in entry["resources"]]
    assert {(each["change"], each["type"]) for each in changed} == {("changed", "route")}
    assert any("/sold-only-when-tried" in line for each in changed for line in each["diff"])
    assert await mesh.ask("GET", "/debug/published") == before


async def test_what_is_there_already_changes_nothing(mesh: Server) -> None:
    """So a difference that is told is one of the manifests."""
    status, found = await _try(mesh, {"manifests": ""})
    assert (status, found["changed"], found["new"], found["gone"]) == (200, [], [], [])
    assert found["unchanged"] > 0


async def test_a_proxy_that_would_be_new_and_what_is_wrong_are_told(mesh: Server) -> None:
    """By name and line; no secret is among it."""
    more = texts.workload("six", "10.0.0.6", app="buyer", account="buyer", spec="service: buyer")
    status, found = await _try(mesh, {"manifests": f"{more}\n---\n{texts.service('bad', '{port: none}')}"})
    assert (status, found["new"]) == (200, ["six.buyer.shop"])
    assert [each["object"] for each in found["problems"]] == ["Service shop/bad"]
    assert TWO not in found["gone"]
    assert "PRIVATE KEY" not in str(found)


async def test_a_proxy_that_would_keep_what_it_has_is_told_with_the_reason(mesh: Server) -> None:
    """A kind of sidecar that there is not: nothing can be made for it, and it is neither gone nor silent."""
    new = texts.workload("six", "10.0.0.6", app="buyer", account="buyer", spec="service: buyer")
    config = texts.mesh_config("sidecar: {sidecarClass: nginx}")
    status, found = await _try(mesh, {"manifests": f"{new}\n---\n{config}"})
    Draft202012Validator(TRIED).validate(found)
    (failed,) = found["failed"]
    assert (status, failed["error"]) == (
        200,
        "UnknownDriverError: sidecar driver 'nginx' is unknown; known: document, envoy",
    )
    assert {TWO, "six.buyer.shop"} <= set(failed["proxies"])
    assert (found["gone"], found["changed"], found["new"]) == ([], [], [])
    assert (await _try(mesh, {"manifests": ""}))[1]["failed"] == []


async def test_what_fails_is_said_in_json(mesh: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every error of the API is; the words of ours are for the log."""

    def broken(_asked: object) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr("meshwright.admin.pages.trial_runner.tried", broken)
    status, found = await _try(mesh, {"manifests": ""})
    assert (status, found) == (
        500,
        {"error": "/api/v1/try failed with an internal error: see the server log"},
    )


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Origin": "http://evil.example"}, {"manifests": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, {"manifests": ""}, 403),
        ({"Sec-Fetch-Site": "same-site"}, {"manifests": ""}, 403),
        ({"Host": "evil.example"}, {"manifests": ""}, 421),
        ({"Content-Type": "text/plain"}, {"manifests": ""}, 415),
        ({}, {"manifests": 1}, 400),
        ({}, [], 400),
        ({}, {"manifests": "#" * (BYTES + 1)}, 413),
        ({}, {"manifests": "\n" * (6 * BYTES)}, 413),
        ({}, {"manifests": "\ud800"}, 400),
    ],
)
async def test_what_is_not_tried(mesh: Server, headers: dict[str, str], body: object, status: int) -> None:
    """A page of another site can neither ask nor have asked; what is no body of ours is said to be none."""
    found, answer = await _try(mesh, body, **headers)
    assert (found, list(answer)) == (status, ["error"])


async def test_manifests_may_be_as_long_as_is_said(mesh: Server) -> None:
    """However JSON writes them: a line's end and a quote take two bytes there, others six."""
    for text in ("#" * BYTES, '#"\n' * (BYTES // 3), "#\u00fc\n" * (BYTES // 4)):
        assert (await _try(mesh, {"manifests": text}))[0] == 200


async def test_our_own_page_may_ask(mesh: Server) -> None:
    """As a browser says it."""
    own = {"Origin": f"http://{mesh.bound.debug}", "Sec-Fetch-Site": "same-origin"}
    assert (await _try(mesh, {"manifests": ""}, **own))[0] == 200
