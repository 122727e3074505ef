"""Tests of manifests that are tried on a running server: affected proxies are reported, without a change."""

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

REJECTED = "rds-outbound.shop/shop|80"
"""Route that the first sidecar of the mesh rejects."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _try(server: Server, body: object, **headers: str) -> tuple[int, dict[str, Any]]:
    address = f"http://{server.bound.debug}/api/v1/try"
    answer = {"Content-Type": "application/json"} | headers
    data = io.BytesIO(json.dumps(body).encode())
    async with (
        aiohttp.ClientSession() as session,
        session.post(address, data=data, headers=answer) as client_response,
    ):
        return client_response.status, await client_response.json()


async def _published(server: Server) -> list[tuple[object, object]]:
    """Return the proxies and versions of each snapshot, without the route that one of them rejects.

    The server sends this route again from time to time, whatever else happens.
    """
    answer = await server.ask("GET", "/debug/published")
    found: list[tuple[object, object]] = []
    for snapshot in answer["snapshots"]:
        resources = {kind: dict(versions) for kind, versions in snapshot["resources"].items()}
        for versions in resources.values():
            versions.pop(REJECTED, None)
        found.append((snapshot["proxies"], resources))
    return found


async def test_trial_reports_changed_resources_and_applies_nothing(mesh: Server) -> None:
    """A route with one more match reports resource and diff, and the published state does not change."""
    before = await _published(mesh)
    match = texts.match("buy", "/sold-only-when-tried")
    status, result = await _try(mesh, {"manifests": texts.route_group("routes", match)})
    assert status == 200
    Draft202012Validator(TRIED).validate(result)
    assert (result["objects"], result["problems"], result["new"], result["gone"]) == (1, [], [], [])
    changed = [resource for entry in result["changed"] for resource in entry["resources"]]
    assert {(item["change"], item["type"]) for item in changed} == {("changed", "route")}
    assert any("/sold-only-when-tried" in line for item in changed for line in item["diff"])
    assert await _published(mesh) == before


async def test_trial_of_an_empty_manifest_reports_no_change(mesh: Server) -> None:
    """Without manifests every proxy is unchanged, so each reported difference comes from the manifests."""
    status, result = await _try(mesh, {"manifests": ""})
    assert (status, result["changed"], result["new"], result["gone"]) == (200, [], [], [])
    assert result["unchanged"] > 0


async def test_trial_reports_new_proxies_and_problems_without_secrets(mesh: Server) -> None:
    """A new proxy is named, an invalid object is a problem, and no private key is in the answer."""
    more = texts.workload("six", "10.0.0.6", app="buyer", account="buyer", spec="service: buyer")
    status, result = await _try(mesh, {"manifests": f"{more}\n---\n{texts.service('bad', '{port: none}')}"})
    assert (status, result["new"]) == (200, ["six.buyer.shop"])
    assert [problem["object"] for problem in result["problems"]] == ["Service shop/bad"]
    assert TWO not in result["gone"]
    assert "PRIVATE KEY" not in str(result)


async def test_trial_reports_proxies_whose_configuration_would_fail(mesh: Server) -> None:
    """With an unknown driver the proxies are listed as failed with the reason, and not as gone or changed.

    A later trial without manifests reports no failure.
    """
    new = texts.workload("six", "10.0.0.6", app="buyer", account="buyer", spec="service: buyer")
    config = texts.mesh_config("sidecar: {sidecarClass: nginx}")
    status, result = await _try(mesh, {"manifests": f"{new}\n---\n{config}"})
    Draft202012Validator(TRIED).validate(result)
    (failed,) = result["failed"]
    assert (status, failed["error"]) == (
        200,
        "UnknownDriverError: sidecar driver 'nginx' is unknown; known: document, envoy",
    )
    assert {TWO, "six.buyer.shop"} <= set(failed["proxies"])
    assert (result["gone"], result["changed"], result["new"]) == ([], [], [])
    assert (await _try(mesh, {"manifests": ""}))[1]["failed"] == []


async def test_internal_error_of_a_trial_is_json_without_details(
    mesh: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An internal error is a JSON error without the exception text, which goes to the log only."""

    def broken(_asked: object) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr("meshwright.admin.pages.trial_runner.tried", broken)
    status, result = await _try(mesh, {"manifests": ""})
    assert (status, result) == (
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
async def test_invalid_or_cross_site_trial_is_refused(
    mesh: Server, headers: dict[str, str], body: object, status: int
) -> None:
    """Requests of other sites, other content types, and invalid or too large bodies are refused."""
    number, answer = await _try(mesh, body, **headers)
    assert (number, list(answer)) == (status, ["error"])


async def test_manifests_of_the_maximum_size_are_tried(mesh: Server) -> None:
    """Manifests up to the limit are accepted, even if their JSON encoding is several times as long."""
    for text in ("#" * BYTES, '#"\n' * (BYTES // 3), "#\u00fc\n" * (BYTES // 4)):
        assert (await _try(mesh, {"manifests": text}))[0] == 200


async def test_trial_from_the_servers_own_page_is_accepted(mesh: Server) -> None:
    """A browser's headers for a same-origin request are accepted."""
    own = {"Origin": f"http://{mesh.bound.debug}", "Sec-Fetch-Site": "same-origin"}
    assert (await _try(mesh, {"manifests": ""}, **own))[0] == 200
