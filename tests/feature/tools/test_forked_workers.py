"""Tests of tests that run in forks: the results, files and reports are those of a run in one process."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.tools.forked_cli import ROOT
from tests.tools.forked_workers import SHARE

CASES = """
import os, pathlib, pytest
pytestmark = pytest.mark.parametrize("number", range(40))
FOLDER = pathlib.Path(__file__).parent

@pytest.fixture(scope="session")
def process():
    yield os.getpid()
    (FOLDER / f"ended-{os.getpid()}").touch()

def test_number(number, process, tmp_path):
    print(f"number {number}")
    (tmp_path / "file").touch(exist_ok=False)
    if number == 7:
        pytest.skip("seven")
    if number == 9 and os.environ.get("ENDS"):
        os._exit(3)
    assert number != 8
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of pytest: its status, what it printed, and the results by outcome."""

    status: int
    text: str
    failed: set[str]
    count: int
    ended: int


def run(folder: Path, *words: str, forks: int = 2, ends: str = "") -> Run:
    """Run two files of CASES in forks."""
    for name in ("a", "b"):
        (folder / f"test_{name}.py").write_text(CASES)
    report = folder / "report.xml"
    plugins = ("-p", "tests.tools.forked_workers", "-p", "no:cacheprovider", "-c", os.devnull)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *plugins,
            f"--forks={forks}",
            f"--junitxml={report}",
            *words,
            str(folder),
        ],
        cwd=ROOT,
        env={**os.environ, "ENDS": ends},
        capture_output=True,
        text=True,
        check=False,
    )
    cases = [*ElementTree.fromstring(report.read_text("utf-8")).iter("testcase")]  # noqa: S314 - our own
    failed = {
        f"{case.get('classname')} {case.get('name')}" for case in cases if case.find("failure") is not None
    }
    return Run(done.returncode, done.stdout, failed, len(cases), len([*folder.glob("ended-*")]))


@pytest.fixture(scope="module")
def completed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run of all tests."""
    return run(tmp_path_factory.mktemp("completed"))


def test_each_test_has_one_result(completed: Run) -> None:
    """Failures have what the test printed; skipped tests are counted."""
    assert completed.status == pytest.ExitCode.TESTS_FAILED
    assert (completed.count, len(completed.failed)) == (80, 2)
    assert "2 failed, 76 passed, 2 skipped" in completed.text
    assert completed.text.count("number 8\n") == 2
    assert "number 6" not in completed.text


def test_each_fork_ends_its_fixtures(completed: Run) -> None:
    """A fixture of the session starts in each fork that needs it, and is torn down there."""
    assert completed.ended in (1, 2)


def test_fork_that_ends_early_fails_its_test(tmp_path: Path) -> None:
    """Both forks end in the test of number 9, so that the other shares have no results."""
    result = run(tmp_path, ends="yes")
    assert result.status == pytest.ExitCode.TESTS_FAILED
    assert {name.partition(" ")[2] for name in result.failed} == {"test_number[9]"}
    assert "ended with status 3" in result.text


def test_fork_ends_after_the_share_of_its_first_failure(tmp_path: Path) -> None:
    """With -x a fork takes no other share."""
    result = run(tmp_path, "-x", forks=1)
    assert result.failed == {"test_a test_number[8]"}
    assert result.count == SHARE
