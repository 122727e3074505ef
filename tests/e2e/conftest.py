"""Where the real Envoy is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.envoy import program
from tests.tools.launcher import Launcher


@pytest.fixture(scope="session", autouse=True)
def meshwright() -> Iterator[str]:
    """Return the command, which is forked from one process while the tests of this folder run."""
    file = Path(os.environ["MESHWRIGHT_COMMAND"])
    with Launcher(file.parent):
        yield str(file)


@pytest.fixture(scope="session")
def envoy() -> str:
    """Return the Envoy to run; tests that need it are skipped where there is none."""
    result = program()
    assert result is not None
    return result
