"""A process that runs the commands of all tests here."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.forked_cli import Command, Done, Typed


@pytest.fixture
def run(typed: Typed, tmp_path: Path) -> Callable[..., Done]:
    """A function that runs a command in the test's folder. Keyword arguments are environment variables."""
    return lambda *arguments, **environment: typed.run(Command(tmp_path, arguments, environment))
