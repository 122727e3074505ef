"""Fixtures of the tests of moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.shared_records import LoopThread
from tests.unit.transfer.meshes import Store


@pytest.fixture(scope="module")
def thread() -> Iterator[LoopThread]:
    """Return the thread with the event loop of the stores."""
    with LoopThread() as running:
        yield running


@pytest.fixture
def store(thread: LoopThread, tmp_path: Path) -> Store:
    """Return an empty store."""
    return Store(thread, tmp_path / "state")
