"""What becomes of a bootstrap that Envoy is asked to judge: the words of who refuses it, or cannot be run."""

import asyncio
from pathlib import Path

import pytest

from meshwright.agent.envoy.command import EnvoyOptions
from meshwright.agent.envoy.runtime import RuntimeDirectory
from meshwright.agent.envoy.supervisor import EnvoyRejected, validated
from tests.tools.child_processes import gone
from tests.tools.deadline import until


def _program(folder: Path, text: str) -> EnvoyOptions:
    """Return a program that stands for Envoy."""
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
async def test_who_says_no_is_quoted_and_who_could_not_answer_is_not_blamed(
    tmp_path: Path, text: str, words: str
) -> None:
    """An Envoy that somebody ends has not refused anything."""
    runtime = RuntimeDirectory(tmp_path)
    with pytest.raises(EnvoyRejected) as refused:
        await validated(_program(tmp_path, text), runtime)
    assert str(refused.value) == words.format(runtime.candidate)


async def test_it_is_no_part_of_our_session(tmp_path: Path) -> None:
    """Ctrl-C goes to every process of a terminal: it is the agent's, and no verdict."""
    said = tmp_path / "said"
    # The fields of a process: its id, name, state, parent, group and session.
    await validated(
        _program(tmp_path, f"cut -d' ' -f1,6 /proc/self/stat > {said}"), RuntimeDirectory(tmp_path)
    )
    ours = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[3])
    assert int(said.read_text().split()[1]) != ours


async def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    """In its own words."""
    with pytest.raises(EnvoyRejected, match="cannot run /nowhere/envoy: No such file or directory"):
        await validated(EnvoyOptions("/nowhere/envoy"), RuntimeDirectory(tmp_path))


async def test_one_that_gives_no_verdict(tmp_path: Path) -> None:
    """It is not waited for ever: certificates are renewed meanwhile."""
    runtime = RuntimeDirectory(tmp_path)
    with pytest.raises(EnvoyRejected, match=r"^Envoy did not finish the check of .* within 0\.5 s$"):
        await validated(_program(tmp_path, "sleep 1000"), runtime, 0.5)


async def test_none_is_left_when_nobody_waits_any_more(tmp_path: Path) -> None:
    """An agent may be told to end meanwhile."""
    pid = tmp_path / "pid"
    program = _program(tmp_path, f"echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 1000")
    judging = asyncio.create_task(validated(program, RuntimeDirectory(tmp_path)))
    await until(pid.exists)
    judging.cancel()
    await asyncio.wait([judging])
    assert judging.cancelled()
    await gone(int(pid.read_text()))
