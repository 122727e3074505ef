"""Plugin for pytest (`-p tests.tools.loop_verification`): every loop verifies its waves.

As under MESHWRIGHT_VERIFY=1, the served state after each wave is compared with a full recomputation from the
same inputs. A test with a difference fails, unless it is marked `differs`; a run without any comparison
fails, too. With several processes, this applies to all of them together.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from meshwright.delivery.self_check import Verification


class Verified:
    """The result: the number of compared waves, and all differences."""

    def __init__(self) -> None:
        self.waves = 0
        self.differences: list[str] = []

    def take(self, of: Verification, differences: tuple[str, ...]) -> None:
        """Record the result of a comparison, and report it as usual."""
        self.waves += 1
        self.differences.extend(differences)
        _TOLD(of, differences)


_TOLD = Verification.on_verified
_FOUND = "what was compared with nothing"
VERIFIED = Verified()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option with which the plugin itself can be tested."""
    parser.addoption("--no-exceptions", action="store_true", help="fail tests marked `differs` as well")


def pytest_configure() -> None:
    """Verify every loop, and collect the results."""

    def on_verified(self: Verification, differences: tuple[str, ...]) -> None:
        VERIFIED.take(self, differences)

    os.environ["MESHWRIGHT_VERIFY"] = "1"
    Verification.on_verified = on_verified  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def _nothing_differs(request: pytest.FixtureRequest) -> Iterator[None]:
    before = len(VERIFIED.differences)
    yield
    excepted = request.node.get_closest_marker("differs") is not None
    if not excepted or request.config.getoption("--no-exceptions"):
        assert VERIFIED.differences[before:] == []


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the results of a worker process; a worker that crashed has failed the run already.

    The node is from pytest-xdist, which may be missing.
    """
    waves, differences = getattr(node, "workeroutput", {}).get(_FOUND, (0, []))
    VERIFIED.waves += waves
    VERIFIED.differences += differences


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that compared nothing; a worker process passes on its results instead."""
    fields: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if fields is not None:
        fields[_FOUND] = (VERIFIED.waves, VERIFIED.differences)
    elif not VERIFIED.waves and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of comparisons and differences."""
    waves, differences = VERIFIED.waves, len(VERIFIED.differences)
    text = f"{waves} waves were compared with ones from nothing: {differences} differences"
    terminalreporter.write_line(text)
