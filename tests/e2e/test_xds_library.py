"""Test of the example in docs/extend/xds.md: our xDS server alone, with a real Envoy."""

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.golden.envoys import HERE, RunningEnvoy, keep
from tools.ports import free_port

pytestmark = pytest.mark.envoy
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "two_clusters.py"


async def server(name: str, ends: AsyncExitStack) -> int:
    """Start an HTTP server that answers with its name; return its port."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=name)

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    ends.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return int(runner.addresses[0][1])


async def start(ends: AsyncExitStack, *command: str) -> asyncio.subprocess.Process:
    """Start a process that ends with the test."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )

    async def end() -> None:
        if process.returncode is None:
            process.kill()
        await process.communicate()

    ends.push_async_callback(end)
    return process


async def until_answered_by(name: str, port: int) -> None:
    """Send requests until that server answers."""
    async with asyncio.timeout(60), aiohttp.ClientSession() as session:
        while True:
            with contextlib.suppress(aiohttp.ClientError):  # not listening yet
                async with session.get(f"http://127.0.0.1:{port}/") as response:
                    if await response.text() == name:
                        return
            await asyncio.sleep(0.02)


@pytest.fixture
async def ends() -> AsyncIterator[AsyncExitStack]:
    """End the programs that a test started."""
    async with AsyncExitStack() as stack:
        yield stack


async def test_documented_xds_example_switches_a_real_envoy_between_clusters(
    envoy: str, ends: AsyncExitStack, tmp_path: Path
) -> None:
    """Traffic goes to the first cluster, and to the second after a line on standard input."""
    ads, front = free_port("127.0.0.1"), free_port("127.0.0.1")
    ports = [str(await server(name, ends)) for name in ("first", "second")]
    example = await start(ends, sys.executable, str(EXAMPLE), f"127.0.0.1:{ads}", str(front), *ports)
    assert example.stdout is not None
    assert example.stdin is not None
    bootstrap = tmp_path / "bootstrap.json"
    bootstrap.write_bytes(await example.stdout.readline())
    session = await ends.enter_async_context(HERE.session())
    await keep(envoy, RunningEnvoy(tmp_path, "", session), HERE, 45, ends)

    await until_answered_by("first", front)
    example.stdin.write(b"second\n")
    await example.stdin.drain()
    await until_answered_by("second", front)
