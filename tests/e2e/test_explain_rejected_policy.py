"""Tests of `explain` for policy that an Envoy rejects, and for a disconnected Envoy."""

import asyncio
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
NET = f"127.{84 + os.getpid() % 8}.{os.getpid() // 8 % 250}"
SELLER, APPLICATION, BUYER = f"{NET}.1", f"{NET}.2", f"{NET}.3"
MESH = texts.joined(
    texts.workload("seller", SELLER, app="store", spec=f"applicationAddress: {APPLICATION}"),
    texts.workload("buyer", BUYER, spec=f"upstreams: [{texts.upstream('store', BUYER, 7001)}]"),
    texts.target("buyers", "buyer", "seller", texts.http("routes")),
)
STORE = f"{BUYER}:7001"
"""Where the buyer calls the store."""
WIDE, NARROW = "/.*", "/only[0-9a-f]{120}"
"""NARROW is too large for an Envoy without our runtime settings."""
HEX = f"/only{'0' * 120}"


def routes(regex: str) -> str:
    """Return the routes of the target `buyers`."""
    return texts.route_group("routes", texts.match("those", regex))


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a request with status 200."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


async def test_explain_matches_traffic_or_reports_unknown_enforcement(
    envoy: str, serve: Serve, tmp_path: Path
) -> None:
    """The explanation matches traffic, or reports that enforcement is unknown.

    The server's Envoy first accepts a policy, then rejects a narrower one, and finally disconnects.
    """
    server = await serve(MESH, routes(WIDE))
    application = await asyncio.start_server(answer, APPLICATION, 18080)

    async def is_in_force() -> bool:
        output = await explained(server, "/books")
        return output["in_force"] == "yes" and await status(STORE, "/books") == 200

    async def is_rejected() -> bool:
        return bool(await rejections(server))

    async def is_settled() -> bool:
        said = await explained(server, HEX)
        return said["in_force"] == "no" or any(" rejects route " in item for item in said["in_force_because"])

    async with application, running(envoy, server, tmp_path / "buyer"):
        async with running(envoy, server, tmp_path / "seller", name="seller.seller.shop", picky=True):
            await until(is_in_force)
            server.write(MESH, routes(NARROW))
            await until(is_rejected)
            await until(is_settled)
            for path, policy in (("/books", "refused"), (HEX, "allowed")):
                response, seen = await explained(server, path), await status(STORE, path)
                assert response["policy"] == policy
                assert response["in_force"] == "unknown" or (response["answer"] == "allowed") == (
                    seen == 200
                ), response
        gone = "seller.seller.shop is not connected"

        async def is_gone() -> bool:
            return gone in (await explained(server, HEX))["in_force_because"]

        await until(is_gone)
        response = await explained(server, HEX)
        assert (response["in_force"], response["answer"]) == ("unknown", "allowed")
        assert (
            response["headline"] == "allowed by policy, but it is not known whether the sidecars enforce this"
        )
