"""One process that runs the commands of all tests here."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.cli.typed import Done, Typed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests that type commands longer: the first of them waits for all that commands import."""
    for item in items:
        if "typed" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(30))


@pytest.fixture(scope="session")
def typed() -> Iterator[Typed]:
    """Start it, and end it with the tests."""
    with Typed() as started:
        yield started


@pytest.fixture
def run(typed: Typed, tmp_path: Path) -> Callable[..., Done]:
    """Return a runner of the command in the test's own folder; keywords are environment variables."""
    return lambda *arguments, **environment: typed.run(tmp_path, arguments, environment)
