"""Fixture of a CA with its ledger, for the tests of enrolment."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.enrolment.test_service import Signs


@pytest.fixture
def signs(tmp_path: Path) -> Iterator[Signs]:
    """Return a CA that signs, and close its ledger after the test."""
    made = Signs(tmp_path / "state")
    yield made
    made.ledger.close()
