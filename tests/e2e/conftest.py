"""Fixtures with the real Envoy and the `meshwright` command."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.envoy import program
from tests.tools.launcher import Launcher


@pytest.fixture(scope="session", autouse=True)
def meshwright() -> Iterator[str]:
    """Return the path of the command, which is forked from one process while the tests of this folder run."""
    file = Path(os.environ["MESHWRIGHT_COMMAND"])
    with Launcher(file.parent):
        yield str(file)


@pytest.fixture(scope="session")
def envoy() -> str:
    """Return the path of the Envoy to run; tests that need Envoy are skipped where it is missing."""
    result = program()
    assert result is not None
    return result
