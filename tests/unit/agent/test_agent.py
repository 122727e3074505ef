"""Tests of the agent with unusable or unchecked files, and of its draining."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from meshwright.agent import agent as keeping
from meshwright.agent import credential_check as reading
from meshwright.agent.agent import Agent
from meshwright.agent.envoy.admin import AdminUnreachable, EnvoyAdmin
from meshwright.agent.envoy.command import EnvoyOptions
from meshwright.agent.envoy.draining import DrainSettings
from meshwright.agent.settings import AgentSettings
from meshwright.mesh.host_port import HostPort
from tests.unit.agent.issued_credentials import write_credentials


def _settings(tmp_path: Path, override: Path | None = None) -> AgentSettings:
    return AgentSettings(
        tmp_path,
        (HostPort("127.0.0.1", 1),),
        tmp_path / "run",
        EnvoyOptions("envoy"),
        override=override,
        look_seconds=0.01,
    )


@contextlib.asynccontextmanager
async def _watching(settings: AgentSettings) -> AsyncIterator[Agent]:
    async with EnvoyAdmin(HostPort("127.0.0.1", 1), settings.run) as admin:
        agent = Agent(settings, admin, asyncio.Event())
        watching = asyncio.create_task(agent.watch())
        yield agent
        assert not watching.done(), watching
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def _counted(agent: Agent, line: str) -> None:
    async with asyncio.timeout(30):
        while line not in agent.own_metrics():
            await asyncio.sleep(0.005)


async def test_override_that_is_not_text_does_not_end_the_watch(tmp_path: Path) -> None:
    """The override is counted as refused, and the files are still watched."""
    override = tmp_path / "override.json"
    override.write_bytes(b"\xff\xfe")
    async with _watching(_settings(tmp_path, override)) as agent:
        await _counted(agent, "refused_total 1")


async def test_unchecked_files_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unchanged files are read again after the checking program failed.

    A lack of memory must not lose a renewal.
    """
    write_credentials(tmp_path, tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        path.rename(tmp_path / path.name)
    (tmp_path / "run" / "certificates").mkdir(parents=True)
    program = reading.PROGRAM
    monkeypatch.setattr(reading, "PROGRAM", "agent.none")
    async with _watching(_settings(tmp_path)) as agent:
        await _counted(agent, "refused_total 2")
        monkeypatch.setattr(reading, "PROGRAM", program)
        await _counted(agent, "taken_total 1")


async def test_files_that_cannot_be_copied_now_are_copied_later(tmp_path: Path) -> None:
    """A full disk must not lose a renewal either: the files are good, and are not written again."""
    write_credentials(tmp_path, tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        path.rename(tmp_path / path.name)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "certificates").write_text("in the way")
    async with _watching(_settings(tmp_path)) as agent:
        await _counted(agent, "refused_total 1")
        (tmp_path / "run" / "certificates").unlink()
        await _counted(agent, "taken_total 1")


async def test_agent_that_has_drained_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A native sidecar gets its end after the application has ended, so it does not drain a second time."""
    now = [1000.0]
    monkeypatch.setattr(keeping, "time", SimpleNamespace(monotonic=lambda: now[0]))
    settings = replace(_settings(tmp_path), drain=DrainSettings(500.0, 500.0))
    async with EnvoyAdmin(HostPort("127.0.0.1", 1), settings.run) as admin:
        agent = Agent(settings, admin, asyncio.Event())
        await agent.drain()
        now[0] += 600
        async with asyncio.timeout(30):
            await agent.end()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await Agent(settings, admin, asyncio.Event()).end()


class _AtFirstAway(EnvoyAdmin):
    """Fake admin interface that does not answer the first request."""

    def __init__(self, bootstrap: Path) -> None:
        super().__init__(HostPort("127.0.0.1", 1), bootstrap)
        self.asked: list[str] = []

    async def text(self, path: str, method: str = "GET") -> str:
        """Record the request; fail for the first one."""
        self.asked.append(f"{method} {path.partition('?')[0]}")
        if len(self.asked) == 1:
            raise AdminUnreachable("it begins only now")
        return ""


async def test_failed_drain_request_is_logged_and_repeated(tmp_path: Path) -> None:
    """A drain request that Envoy did not receive is logged, and sent again when the agent ends."""
    settings = replace(_settings(tmp_path), drain=DrainSettings(0.0, 0.0))
    async with _AtFirstAway(settings.run) as admin:
        agent = Agent(settings, admin, asyncio.Event())
        with capture_logs() as logs:
            await agent.drain()
        assert [log["reason"] for log in logs] == ["it begins only now"]
        await agent.end()
    assert admin.asked == ["POST /drain_listeners"] * 2
