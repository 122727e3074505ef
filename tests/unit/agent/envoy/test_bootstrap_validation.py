"""Tests of a bootstrap's validation by Envoy: refusals, and checks that give no result."""

import asyncio
from pathlib import Path

import pytest

from meshwright.agent.envoy.command import EnvoyOptions
from meshwright.agent.envoy.runtime import RuntimeDirectory
from meshwright.agent.envoy.supervisor import EnvoyRejected, validated
from tests.tools.child_processes import gone
from tests.tools.deadline import until


def _program(folder: Path, text: str) -> EnvoyOptions:
    """Return the options for a shell script in place of Envoy."""
    program = folder / "envoy"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return EnvoyOptions(str(program))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo 'no such'; echo ' field'; exit 1", "Envoy does not accept {}: no such field"),
        ("kill -TERM $$", "Envoy was ended by signal 15 during the check of {}"),
    ],
)
async def test_refusal_is_quoted_and_a_killed_check_is_reported_as_such(
    tmp_path: Path, text: str, words: str
) -> None:
    """Envoy's refusal is quoted; an Envoy that is killed by a signal has not refused the file."""
    runtime = RuntimeDirectory(tmp_path)
    with pytest.raises(EnvoyRejected) as refused:
        await validated(_program(tmp_path, text), runtime)
    assert str(refused.value) == words.format(runtime.candidate)


async def test_check_runs_in_a_session_of_its_own(tmp_path: Path) -> None:
    """The check has its own session.

    Ctrl-C is sent to every process of a terminal and would look like a result.
    """
    path = tmp_path / "said"
    # The fields of a process: its id, name, state, parent, group and session.
    await validated(
        _program(tmp_path, f"cut -d' ' -f1,6 /proc/self/stat > {path}"), RuntimeDirectory(tmp_path)
    )
    ours = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[3])
    assert int(path.read_text().split()[1]) != ours


async def test_missing_envoy_is_an_error_with_its_path(tmp_path: Path) -> None:
    """The error names the path of the program and the cause."""
    with pytest.raises(EnvoyRejected, match="cannot run /nowhere/envoy: No such file or directory"):
        await validated(EnvoyOptions("/nowhere/envoy"), RuntimeDirectory(tmp_path))


async def test_check_without_a_result_times_out(tmp_path: Path) -> None:
    """A check that does not finish is ended, because certificates are renewed meanwhile."""
    runtime = RuntimeDirectory(tmp_path)
    with pytest.raises(EnvoyRejected, match=r"^Envoy did not finish the check of .* within 0\.5 s$"):
        await validated(_program(tmp_path, "sleep 1000"), runtime, 0.5)


async def test_cancelled_check_leaves_no_process(tmp_path: Path) -> None:
    """The process is ended if the check is cancelled, because an agent can stop meanwhile."""
    pid = tmp_path / "pid"
    program = _program(tmp_path, f"echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 1000")
    judging = asyncio.create_task(validated(program, RuntimeDirectory(tmp_path)))
    await until(pid.exists)
    judging.cancel()
    await asyncio.wait([judging])
    assert judging.cancelled()
    await gone(int(pid.read_text()))
