"""Fixture for all feature tests here: unchanged logging."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Restore the configuration of structlog, because commands that run in this process change it."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
