"""One process that runs the commands of all tests here."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.cli.typed import Done, Typed


@pytest.fixture(scope="session")
def typed() -> Iterator[Typed]:
    """Start it, and end it with the tests."""
    with Typed() as started:
        yield started


@pytest.fixture
def run(typed: Typed, tmp_path: Path) -> Callable[..., Done]:
    """Return a runner of the command in the test's own folder; keywords are environment variables."""
    return lambda *arguments, **environment: typed.run(tmp_path, arguments, environment)
