"""Where the real Envoy is."""

import pytest

from tests.envoy import program


@pytest.fixture(scope="session")
def envoy() -> str:
    """Return the Envoy to run; tests that need it are skipped where there is none."""
    found = program()
    assert found is not None
    return found
