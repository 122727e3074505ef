"""The Envoy that tests run."""

import os
import shutil
from pathlib import Path


def program() -> str | None:
    """Return the path of Envoy: MESHWRIGHT_ENVOY, the clone's own, or PATH's; None if it is missing."""
    local = Path(__file__).parents[2] / ".envoy" / "bin" / "envoy"
    return shutil.which(os.environ.get("MESHWRIGHT_ENVOY") or str(local)) or shutil.which("envoy")
