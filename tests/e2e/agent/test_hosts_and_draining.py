"""Names on the machine follow what the proxy can call; an end waits for those who are being served."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from agent.hosts import BEGIN
from tests.e2e.agent.scenes import APPLICATION, CLIENT, MESH, PORT, Scene, answered, get, when
from tests.golden.live import serve, until

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(90)]
SLOW = 8081


async def test_names_stand_in_the_hosts_file_as_long_as_they_lead_somewhere(
    scene: Scene, tmp_path: Path
) -> None:
    """They come with the listener, go with the permission, come back with it, and go with the agent."""
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
    async with asyncio.timeout(10):
        await agent.process.wait()
    assert hosts.read_text() == "127.0.0.1 localhost\n"
    assert BEGIN not in hosts.read_text()


@pytest.mark.parametrize(("most", "served"), [("30", True), ("1", False)])
async def test_an_agent_that_ends_waits_for_a_long_answer_but_not_for_ever(
    scene: Scene, ends: AsyncExitStack, most: str, served: bool
) -> None:
    """An answer that is under way when SIGTERM comes is finished within the limit, and cut beyond it."""
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
    asked = asyncio.create_task(get(f"http://{CLIENT}:{PORT}/"))
    await under_way.wait()

    shop.process.terminate()
    await until(lambda: _draining(shop.status), 10)
    if served:
        assert shop.process.returncode is None
        go_on.set()
        assert await asked == (200, "slowly")
    async with asyncio.timeout(15):
        assert await shop.process.wait() == 0
    if not served:
        assert (await asked)[1] == ""
        go_on.set()
    assert not await answered()


async def _draining(status: str) -> bool:
    return "draining" in (await get(f"{status}/healthz/ready"))[1]
