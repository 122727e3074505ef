"""The supervisor of Envoys, with programs that only wait in their place."""

import asyncio
import os
from pathlib import Path

import pytest

from agent.envoy.command import EnvoyOptions
from agent.envoy.lifecycle import Lifecycle
from agent.envoy.runtime import RuntimeDirectory
from agent.envoy.supervisor import Supervisor


class Broken:
    """An admin interface whose answer nobody has foreseen."""

    async def live_epoch(self) -> int | None:
        """Fail."""
        raise LookupError("state")


async def test_a_task_that_fails_ends_it_with_what_it_failed_with(tmp_path: Path) -> None:
    """It would wait for ever for what the task was to say; no Envoy is left behind."""
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
