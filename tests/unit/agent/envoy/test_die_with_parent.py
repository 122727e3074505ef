"""A program that dies with the process that started it: what becomes of the statuses and words."""

import subprocess

from meshwright.agent.envoy.die_with_parent import NOT_STARTED, bound


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_a_program_is_what_it_was_asked_to_be() -> None:
    """Its own words and status."""
    done = _run(bound(["sh", "-c", "echo here; exit 3"]))
    assert (done.returncode, done.stdout, done.stderr) == (3, "here\n", "")


def test_one_that_cannot_be_run_says_so() -> None:
    """With a status of its own, which no Envoy has."""
    done = _run(bound(["/nowhere/envoy"]))
    assert (done.returncode, done.stderr) == (
        NOT_STARTED,
        "cannot run /nowhere/envoy: No such file or directory\n",
    )


def test_without_its_parent_it_does_not_begin() -> None:
    """The one that it was to die with is gone before the kernel was asked: nobody would end it."""
    command = bound(["echo", "begun"])
    command[command.index("echo") - 1] = "1"
    assert _run(command).stdout == ""
