"""Test of the run in which every loop verifies itself, which must fail on a difference."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BROKEN = "tests/unit/delivery/test_loop.py::test_self_check_logs_and_counts_a_difference"
NO_LOOP = "tests/unit/delivery/timing/test_debounce.py"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((BROKEN,), 0, "2 waves were compared with ones from nothing: "),
        ((BROKEN, "--no-exceptions"), 1, "AssertionError"),
        ((NO_LOOP,), 1, "0 waves were compared with ones from nothing: 0 differences"),
        ((BROKEN, "-n1"), 0, "\n2 waves were compared with ones from nothing: "),
    ],
)
def test_loop_verification_fails_on_a_difference_or_without_a_comparison(
    arguments: tuple[str, ...], status: int, said: str
) -> None:
    """The planted difference is expected in the usual run, and fails with `--no-exceptions`.

    A run without any comparison fails too.
    """
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.tools.loop_verification", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert (done.returncode, said in done.stdout) == (status, True), done.stdout
