"""Tests of the launcher that forks instead of starting `meshwright`, which must behave like the program."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.deadline import wait_until
from tests.tools.forked_cli import ROOT, forked
from tests.tools.launcher import Launcher, installed

_INTERRUPTED = f"""
import os, signal
from {forked.__module__} import {forked.__name__}
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))
if (child := {forked.__name__}()) == 0:
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if status < 0:
    os.kill(os.getpid(), -status)
raise SystemExit(status)
"""
"""Ends as its child ends, which is interrupted before the fork is complete."""


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The launcher's file, with a running process that forks."""
    folder = tmp_path_factory.mktemp("launcher")
    file = installed(folder)
    with Launcher(folder):
        yield file


def test_fork_has_the_output_and_status_of_the_program(launcher: Path, tmp_path: Path) -> None:
    """Output, errors and status are equal in the caller's folder and with its variables."""
    (tmp_path / "mesh.yaml").write_text("kind: [")
    variables = {"PATH": os.environ["PATH"], "COLUMNS": "60"}
    real = Path(sys.executable).parent / "meshwright"
    asked = ("version", "lint mesh.yaml", "lint none.yaml", "agent status --status x")
    for words in map(str.split, asked):
        forked, itself = (
            subprocess.run([file, *words], cwd=tmp_path, env=variables, capture_output=True, check=False)
            for file in (launcher, real)
        )
        assert (forked.returncode, forked.stdout, forked.stderr) == (
            itself.returncode,
            itself.stdout,
            itself.stderr,
        )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signal_to_the_launcher_ends_the_fork(launcher: Path, number: signal.Signals) -> None:
    """The end of the output shows the end of the fork. SIGKILL of the launcher is noticed too."""
    command = [str(launcher), "agent", "wait", "--seconds", "600", "--status", "127.0.0.1:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            wait_until(lambda: _passes_on(process.pid), 30)
            process.send_signal(number)
            assert process.wait(30) != 0
            assert process.stdout is not None
            process.stdout.read()
        finally:
            process.kill()


def test_interrupt_during_a_fork_ends_the_child() -> None:
    """Python ignores an exception in a hook of `fork`, so the launcher must end the child itself."""
    words = [sys.executable, "-c", _INTERRUPTED]
    assert subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode == -signal.SIGINT


def _passes_on(pid: int) -> bool:
    """Return whether a process handles the last of the signals that the launcher passes on."""
    (caught,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(caught, 16) & 1 << signal.SIGUSR2 - 1)
