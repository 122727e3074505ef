"""Tests of the hosts file, which follows the proxy's listeners, and of draining before the agent ends."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import aiohttp
import pytest
from aiohttp import web

from meshwright.agent.hosts.file import BEGIN
from tests.e2e.agent.scenes import (
    APPLICATION,
    CLIENT,
    DRAIN_SECONDS,
    MESH,
    PORT,
    Agent,
    Scene,
    answered,
    get,
    when,
)
from tests.golden.running_mesh import serve
from tests.tools.deadline import until

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(300)]
SLOW, GREETER = 8081, 7000
LONG = (
    MESH.replace(
        f"targetPort: {PORT}, appProtocol: http}}",
        f"targetPort: {SLOW}, appProtocol: http}}, "
        f"{{name: greeter, port: {GREETER}, appProtocol: tcp-server-first}}",
    ).replace(
        f"localPort: {PORT}}}",
        f"localPort: {PORT}}}, {{service: shop, port: {GREETER}, address: {CLIENT}, localPort: {GREETER}}}",
    )
    + f"""
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: TCPRoute
metadata: {{name: greeter, namespace: default}}
spec: {{matches: {{ports: [{GREETER}]}}}}
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {{name: greetings, namespace: default}}
spec:
  destination: {{kind: ServiceAccount, name: shop, namespace: default}}
  sources: [{{kind: ServiceAccount, name: alice, namespace: default}}]
  rules: [{{kind: TCPRoute, name: greeter}}]
"""
)
"""The shop greets, too, and its web speaks WebSocket."""


async def test_hosts_file_has_service_names_only_while_they_can_be_called(
    scene: Scene, tmp_path: Path
) -> None:
    """A name is added with its listener, follows the permission, and is removed when the agent ends."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    line = f"{CLIENT} shop shop.default shop.default.svc shop.default.svc.cluster.local"
    agent = await scene.agent("alice-uuid", "--hosts-file", str(hosts))
    await when(lambda: line in hosts.read_text().splitlines())

    scene.mesh.apply(MESH.replace("name: alice, namespace: default}]", "name: bob, namespace: default}]"))
    await when(lambda: line not in hosts.read_text())
    scene.mesh.apply(MESH)
    await when(lambda: line in hosts.read_text())
    agent.process.terminate()
    async with asyncio.timeout(60):
        await agent.process.wait()
    assert hosts.read_text() == "127.0.0.1 localhost\n"
    assert BEGIN not in hosts.read_text()


@pytest.mark.parametrize(
    ("most", "served"), [("30", True), pytest.param("1", False, marks=pytest.mark.nightly)]
)
async def test_ending_agent_waits_for_a_long_response_up_to_its_limit(
    scene: Scene, ends: AsyncExitStack, most: str, served: bool
) -> None:
    """A response in progress at SIGTERM is finished within the limit, and cut after it."""
    under_way, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nslo")
        under_way.set()
        await go_on.wait()
        writer.write(b"wly")
        writer.close()

    await serve(ends, APPLICATION, SLOW, slowly)
    await scene.agent("alice-uuid")
    scene.mesh.apply(MESH.replace(f"targetPort: {PORT}", f"targetPort: {SLOW}"))
    shop = await scene.agent("shop-uuid", "--termination-most-seconds", most)
    asked = await _asked(under_way)

    shop.process.terminate()
    await until(lambda: _draining(shop))
    if served:
        assert shop.process.returncode is None
        go_on.set()
        assert await asked == (200, "slowly")
    async with asyncio.timeout(60):
        assert await shop.process.wait() == 0
    if not served:
        assert (await asked)[1] == ""
        go_on.set()
    assert not await answered()


@pytest.mark.parametrize(
    ("protocol", "most", "served"),
    [
        pytest.param("tcp", "30", True, marks=pytest.mark.nightly),
        ("tcp", "1", False),
        ("websocket", "30", True),
        pytest.param("websocket", "1", False, marks=pytest.mark.nightly),
    ],
)
async def test_ending_agent_waits_for_a_long_conversation_up_to_its_limit(
    scene: Scene, ends: AsyncExitStack, protocol: str, most: str, served: bool
) -> None:
    """A TCP or WebSocket conversation goes on past Envoy's drain time, and the agent ends when it ends.

    At the limit the conversation is cut.
    """
    await _greet(ends)
    scene.mesh.apply(LONG)
    await scene.agent("alice-uuid")
    shop = await scene.agent("shop-uuid", "--termination-most-seconds", most)
    talking = Over[protocol](ends)
    await until(lambda: _begun(talking))
    assert await talking.say("before") == "heard before"

    shop.process.terminate()
    await until(lambda: _draining(shop))
    if served:
        enough = time.monotonic() + DRAIN_SECONDS + 0.5
        while time.monotonic() < enough:
            assert await talking.say("meanwhile") == "heard meanwhile"
        assert shop.process.returncode is None
        await talking.end()
    async with asyncio.timeout(60):
        assert await shop.process.wait() == 0
    if not served:
        assert await talking.say("after") == ""


class Talk(Protocol):
    """A conversation between the customer and the shop."""

    async def begin(self) -> None:
        """Begin; raise ClientError, OSError or EOFError while no server answers."""

    async def say(self, word: str) -> str:
        """Send a word and return the answer, or an empty string if the connection was cut."""

    async def end(self) -> None:
        """End the conversation."""


class OverTcp:
    """A conversation by lines, after the server's greeting."""

    def __init__(self, ends: AsyncExitStack) -> None:
        self._ends = ends

    async def begin(self) -> None:
        """Connect and read the greeting."""
        self._reader, self._writer = await asyncio.open_connection(CLIENT, GREETER)
        if await self._reader.readline() != b"welcome\n":
            raise EOFError
        self._ends.callback(self._writer.close)

    async def say(self, word: str) -> str:
        """Send a line and read one."""
        try:
            self._writer.write(f"{word}\n".encode())
            return (await self._reader.readline()).decode().strip()
        except ConnectionError:
            return ""

    async def end(self) -> None:
        """Close the connection."""
        self._writer.close()


class OverWebSocket:
    """A conversation by WebSocket messages."""

    def __init__(self, ends: AsyncExitStack) -> None:
        self._ends = ends

    async def begin(self) -> None:
        """Request the upgrade."""
        session = await self._ends.enter_async_context(aiohttp.ClientSession())
        self._socket = await session.ws_connect(f"http://{CLIENT}:{PORT}/")

    async def say(self, word: str) -> str:
        """Send a message and receive one."""
        try:
            await self._socket.send_str(word)
            result = await self._socket.receive()
        except ConnectionError:
            return ""
        return str(result.data) if result.type is aiohttp.WSMsgType.TEXT else ""

    async def end(self) -> None:
        """Close the WebSocket."""
        await self._socket.close()


Over: dict[str, Callable[[AsyncExitStack], Talk]] = {"tcp": OverTcp, "websocket": OverWebSocket}


async def _begun(talking: Talk) -> bool:
    try:
        await talking.begin()
    except (aiohttp.ClientError, OSError, EOFError):
        return False
    return True


async def _greet(ends: AsyncExitStack) -> None:
    """Serve TCP and WebSocket, answering every line and every message."""

    async def lines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"welcome\n")
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(b"heard " + line)
        writer.close()

    async def messages(request: web.Request) -> web.WebSocketResponse:
        web_socket_response = web.WebSocketResponse()
        await web_socket_response.prepare(request)
        async for message in web_socket_response:
            await web_socket_response.send_str(f"heard {message.data}")
        return web_socket_response

    await serve(ends, APPLICATION, GREETER, lines)
    app = web.Application()
    app.router.add_get("/", messages)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    ends.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, APPLICATION, SLOW).start()


async def _asked(under_way: asyncio.Event) -> asyncio.Task[tuple[int, str]]:
    """Send requests until a response is in progress; return its task."""
    while True:
        asked = asyncio.create_task(get(f"http://{CLIENT}:{PORT}/"))
        while not asked.done():
            if under_way.is_set():
                return asked
            await asyncio.sleep(0.01)


async def _draining(agent: Agent) -> bool:
    """Return whether an agent drains or has ended. With a short limit, the draining may not be observable."""
    text = (await get(f"{agent.status}/healthz/ready"))[1]
    return "draining" in text or agent.process.returncode is not None
