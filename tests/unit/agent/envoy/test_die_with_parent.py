"""Tests of a program that dies with its parent: its status and output."""

import subprocess

from meshwright.agent.envoy.die_with_parent import NOT_STARTED, bound


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_program_keeps_its_output_and_status() -> None:
    """The wrapped program has its own output and exit status."""
    done = _run(bound(["sh", "-c", "echo here; exit 3"]))
    assert (done.returncode, done.stdout, done.stderr) == (3, "here\n", "")


def test_program_that_cannot_be_run_has_a_status_of_its_own() -> None:
    """The error names the program and the cause, and the status is `NOT_STARTED`, which Envoy never uses."""
    done = _run(bound(["/nowhere/envoy"]))
    assert (done.returncode, done.stderr) == (
        NOT_STARTED,
        "cannot run /nowhere/envoy: No such file or directory\n",
    )


def test_program_does_not_start_without_its_parent() -> None:
    """A program whose parent has died before the kernel was asked does not start. It would never be ended."""
    command = bound(["echo", "begun"])
    command[command.index("echo") - 1] = "1"
    assert _run(command).stdout == ""
