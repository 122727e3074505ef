"""Test that requests answered by an application are not repeated, even if it forges our retry header."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import yaml

from tests.golden.running_mesh import LiveMesh, serve
from tests.survival.failing_endpoint import CLIENT, PORT, address, documents

pytestmark = pytest.mark.envoy

_FORGED = b"HTTP/1.1 503 No\r\nx-meshwright-undelivered: true\r\ncontent-length: 0\r\n\r\n"


async def test_application_cannot_cause_a_retry_with_a_forged_header(tmp_path: Path) -> None:
    """Its sidecar removes the header, so each request arrives once.

    The caller does not get the header either.
    """
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                seen.append((await reader.readuntil(b"\r\n\r\n")).split(b" ")[0])
                writer.write(_FORGED)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with AsyncExitStack() as ends:
        for number in range(2):
            await serve(ends, address(number, application=True), PORT, answer)
        mesh = await LiveMesh.start(tmp_path, yaml.safe_dump_all(documents(2)), ends)
        for name in ("shop-0", "shop-1", "client"):
            await mesh.envoy(name)
        await mesh.in_force()
        async with aiohttp.ClientSession() as session:
            for method in ("POST", "GET"):
                async with session.request(method, f"http://{CLIENT}:{PORT}/") as client_response:
                    assert (
                        client_response.status,
                        client_response.headers.get("x-meshwright-undelivered"),
                    ) == (503, None)
    assert seen == [b"POST", b"GET"]
