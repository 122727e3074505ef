"""Where the real Envoy is; tests that need it are skipped, and say so, where there is none."""

import os
import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def envoy() -> str:
    """Return the Envoy to run: MESHWRIGHT_ENVOY, the clone's own, or PATH's."""
    wanted = os.environ.get("MESHWRIGHT_ENVOY") or str(REPOSITORY / ".envoy" / "bin" / "envoy")
    found = shutil.which(wanted) or shutil.which("envoy")
    if found is None:
        pytest.skip("there is no Envoy: `make envoy` makes one")
    return found
