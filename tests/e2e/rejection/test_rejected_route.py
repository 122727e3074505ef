"""Tests of a route entry that a real Envoy rejects: the other entries of the Service stay in force."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.e2e.envoys import explained, rejections, running, status
from tests.feature.identity.conftest import Server, serve
from tests.meshes import texts
from tests.tools.deadline import until

__all__ = ["serve"]

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(300)]

Serve = Callable[..., Awaitable[Server]]
NET = f"127.{92 + os.getpid() % 8}.{os.getpid() // 8 % 250}"
BUYER = f"{NET}.3"
MESH = texts.joined(
    texts.PERMISSIVE,
    texts.workload("buyer", BUYER, spec=f"upstreams: [{texts.upstream('store', BUYER, 7001)}]"),
)
SMALL, LARGE = "/only0*", "/only[0-9a-f]{120}"
"""LARGE is too large for an Envoy without our runtime settings."""
HEX = f"/only{'0' * 120}"
PLACE = "spec.rules[1].matches[0] of HTTPRoute shop/web"


def route(regex: str, first: int = 301) -> str:
    """Return a route with three rules, which redirect with different statuses: `/a`, `regex`, the rest."""

    def rule(kind: str, path: str, status: int) -> str:
        filters = f"filters: [{{type: RequestRedirect, requestRedirect: {{statusCode: {status}}}}}]"
        return f'{{matches: [{{path: {{type: {kind}, value: "{path}"}}}}], {filters}}}'

    rules = (rule("PathPrefix", "/a", first), rule("RegularExpression", regex, 307))
    return texts.gateway_route("web", "store", *rules, rule("PathPrefix", "/", 308))


async def test_a_rejected_entry_of_a_route_is_left_out_until_its_edit(
    envoy: str, serve: Serve, tmp_path: Path
) -> None:
    """The other entries follow their edits, requests go on, and every report names the rule and the cause."""
    server = await serve(MESH, route(SMALL), verify=True)

    async def answers(*expected: int) -> bool:
        return [await status(f"{BUYER}:7001", path) for path in ("/a", "/only00", HEX, "/x")] == [*expected]

    async def is_rejected() -> bool:
        return len(await rejections(server)) == 1

    async def says(path: str, in_force: str) -> bool:
        return bool((await explained(server, path))["in_force"] == in_force)

    async with running(envoy, server, tmp_path / "buyer", picky=True):
        await until(lambda: answers(301, 307, 307, 308))
        await until(lambda: says(HEX, "yes"))

        # The first rule changes too, so the last good version of the routes cannot be served.
        server.write(MESH, route(LARGE, first=302))
        await until(lambda: answers(302, 308, 308, 308))
        await until(is_rejected)
        (problem,) = await rejections(server)
        assert (problem["object"], problem["field"]) == ("HTTPRoute shop/web", "spec.rules[1].matches[0]")
        assert "program size" in problem["value"]
        assert "because of a match of rule-2 of HTTPRoute shop/web" in problem["expected"]
        await until(lambda: says(HEX, "no"))
        found = await explained(server, HEX)
        (because,) = found["in_force_because"]
        assert because.startswith(f"buyer.buyer.shop is served without {PLACE}, which the proxy rejects: ")
        assert (
            found["headline"] == "redirected with 308, although the answer by policy is redirected with 307"
        )
        assert await says("/a", "yes")
        assert await says("/x", "yes")

        server.write(MESH, route(SMALL, first=302))
        await until(lambda: answers(302, 307, 307, 308))
        await until(lambda: says(HEX, "yes"))
        assert await rejections(server) == []

        # Only the rejected entry changes, so the version from before the edit stays in force.
        server.write(MESH, route(LARGE, first=302))
        await until(is_rejected)
        await until(lambda: answers(302, 307, 307, 308))
        await until(lambda: says("/only00", "unknown"))
        (because,) = (await explained(server, "/only00"))["in_force_because"]
        assert "it has an earlier version of the routes to shop/store:80" in because
    assert await server.metric("meshwright_verification_differences_total") == 0
