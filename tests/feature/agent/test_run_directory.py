"""The agent's own directory, in a folder of a user who means harm: `agent --run`, started by root."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

MALLORY = 12345
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")


def _refused(tmp_path: Path, run: Path) -> str:
    """Run the agent, and return why it did not begin."""
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


def test_a_file_behind_a_lock_that_is_a_link_stays_whole(tmp_path: Path) -> None:
    """The folder is refused for its owner before anything in it is opened."""
    victim, run = tmp_path / "victim", tmp_path / "run"
    victim.write_text("whole")
    run.mkdir(mode=0o755)
    (run / "lock").symlink_to(victim)
    os.chown(run, MALLORY, MALLORY)
    assert _refused(tmp_path, run) == (
        f"meshwright: {run} belongs to user {MALLORY}, but the program runs as user 0: chown 0 {run}\n"
    )
    assert victim.read_text() == "whole"


def test_a_directory_behind_another_users_link_is_not_used(tmp_path: Path) -> None:
    """Root's own directory, to which the link leads, gets neither a lock nor another mode."""
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
