"""Tests of `agent --run`, started by root, with a directory that another user controls."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

MALLORY = 12345
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")


def _refused(tmp_path: Path, run: Path) -> str:
    """Run the agent, assert that it refuses to start, and return its error."""
    command = [
        sys.executable,
        "-c",
        "from meshwright.cli.main import main; main()",
        "agent",
        "--log-level",
        "error",
    ]
    command += ["--credentials", str(tmp_path), "--ads", "127.0.0.1:1", "--status", "127.0.0.1:0"]
    done = subprocess.run([*command, "--run", str(run)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def test_run_directory_of_another_user_is_refused_before_its_lock_is_opened(tmp_path: Path) -> None:
    """The owner is checked first, so a lock file that is a symbolic link does not truncate its target."""
    victim, run = tmp_path / "victim", tmp_path / "run"
    victim.write_text("whole")
    run.mkdir(mode=0o755)
    (run / "lock").symlink_to(victim)
    os.chown(run, MALLORY, MALLORY)
    assert _refused(tmp_path, run) == (
        f"meshwright: {run} belongs to user {MALLORY}, but the program runs as user 0: chown 0 {run}\n"
    )
    assert victim.read_text() == "whole"


def test_run_directory_behind_another_users_link_is_refused_unchanged(tmp_path: Path) -> None:
    """The target of another user's symbolic link gets neither a lock file nor another mode."""
    there, home = tmp_path / "there", tmp_path / "home"
    there.mkdir(mode=0o755)
    home.mkdir()
    (home / "run").symlink_to(there)
    os.chown(home / "run", MALLORY, MALLORY, follow_symlinks=False)
    assert _refused(tmp_path, home / "run") == (
        f"meshwright: cannot use the directory {home}/run: run is a symbolic link that "
        f"belongs to user {MALLORY}; links of other users are not followed\n"
    )
    assert ([*there.iterdir()], stat.S_IMODE(there.stat().st_mode)) == ([], 0o755)
