"""Tests of the supervisor of Envoy processes, with waiting shell scripts in place of Envoy."""

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from meshwright.agent.envoy.command import EnvoyOptions
from meshwright.agent.envoy.lifecycle import EnvoyEnd, Lifecycle, RestartSettings
from meshwright.agent.envoy.runtime import RuntimeDirectory
from meshwright.agent.envoy.supervisor import Supervisor


class Broken:
    """An admin interface that raises an unexpected error."""

    async def live_epoch(self) -> int | None:
        """Raise LookupError."""
        raise LookupError("state")


class Silent:
    """An admin interface that never answers."""

    async def live_epoch(self) -> int | None:
        """Return None, as without an answer."""
        return None


async def test_failed_task_ends_the_supervisor_with_its_error(tmp_path: Path) -> None:
    """The supervisor raises the error of its task and ends Envoy. It would wait for ever otherwise."""
    program = tmp_path / "envoy"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    runtime = RuntimeDirectory(tmp_path / "run")
    runtime.prepare()
    supervisor = Supervisor(EnvoyOptions(str(program)), runtime, Lifecycle(), Broken())
    await supervisor.configured("a")
    pid = supervisor.pids[0]
    names = {task.get_name() for task in asyncio.all_tasks()}
    with pytest.raises(LookupError, match="state"):
        await asyncio.wait_for(supervisor.run(), 5)
    assert {"envoy 0 ends", "envoy 0 is live"} <= names
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_envoy_has_the_environment_of_its_configuration_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Envoy gets the configured environment and no variable of the agent."""
    monkeypatch.setenv("OF_THE_AGENT", "yes")
    program, seen = tmp_path / "envoy", tmp_path / "seen"
    script = f'echo "$WHO ${{OF_THE_AGENT-no}}" > {seen}.new\nmv {seen}.new {seen}\nexec sleep 60\n'
    program.write_text(f"#!/bin/sh\n{script}")
    program.chmod(0o755)
    runtime = RuntimeDirectory(tmp_path / "run")
    runtime.prepare()
    supervisor = Supervisor(EnvoyOptions(str(program)), runtime, Lifecycle(), Silent())
    running = asyncio.create_task(supervisor.run(), name="keeper")
    await supervisor.configured("a", {"PATH": "/usr/bin:/bin", "WHO": "shop"})
    async with asyncio.timeout(10):
        while not seen.exists():
            await asyncio.sleep(0.01)
    await supervisor.stop()
    await running
    assert seen.read_text() == "shop no\n"


async def test_envoy_that_cannot_be_started_now_is_started_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may have no process to give for a moment. No later configuration would be started."""
    program = tmp_path / "envoy"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    runtime = RuntimeDirectory(tmp_path / "run")
    runtime.prepare()
    start, refusals, started = asyncio.create_subprocess_exec, [errno.EAGAIN], asyncio.Event()

    async def execute(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
        if refusals:
            raise OSError(refusals.pop(), "Resource temporarily unavailable")
        started.set()
        return await start(*arguments, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", execute)
    lifecycle = Lifecycle(RestartSettings(first_seconds=0.0))
    supervisor = Supervisor(EnvoyOptions(str(program)), runtime, lifecycle, Silent())
    running = asyncio.create_task(supervisor.run(), name="keeper")
    await supervisor.configured("a")
    async with asyncio.timeout(5):
        await started.wait()
    await supervisor.stop()
    assert await running is EnvoyEnd.STOPPED
