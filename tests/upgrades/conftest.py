"""Fixtures of two releases: the release before as it is in the archive, and this clone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.forked_cli import Typed
from tests.tools.program import Program
from tools.release_before import unpacked


@pytest.fixture(scope="session")
def release_before() -> Path:
    """Return the folder with the packages and the command of the release before."""
    return unpacked()


@pytest.fixture(scope="session")
def before(release_before: Path) -> Iterator[Typed]:
    """Start the process that runs commands of the release before; end it with the tests."""
    with Typed(release_before) as started:
        yield started


@pytest.fixture
def program(tmp_path: Path, before: Typed) -> Iterator[Program]:
    """The program of the release before, with a state directory that does not exist yet."""
    made = Program(tmp_path / "state", tmp_path, before)
    yield made
    made.end()
