"""What an agent makes of files that cannot be used."""

import asyncio
import contextlib
from pathlib import Path

from agent.app import Agent
from agent.envoy.admin import EnvoyAdmin
from agent.envoy.command import EnvoyOptions
from agent.settings import AgentSettings
from mesh.host_port import HostPort


async def test_an_override_that_is_no_text_ends_no_watch(tmp_path: Path) -> None:
    """It is refused as any other that cannot be used, and the files are watched on."""
    override = tmp_path / "override.json"
    override.write_bytes(b"\xff\xfe")
    settings = AgentSettings(
        tmp_path,
        HostPort("127.0.0.1", 1),
        tmp_path / "run",
        EnvoyOptions("envoy"),
        override=override,
        look_seconds=0.01,
    )
    async with EnvoyAdmin("127.0.0.1:1", settings.run) as admin:
        agent = Agent(settings, admin, asyncio.Event())
        watching = asyncio.create_task(agent.watch())
        async with asyncio.timeout(30):
            while "refused_total 1" not in agent.own_metrics():
                assert not watching.done(), watching
                await asyncio.sleep(0.005)
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
