"""Which Envoy is run."""

import os
import shutil
from pathlib import Path


def program() -> str | None:
    """Return Envoy itself: MESHWRIGHT_ENVOY, the clone's own, or PATH's; None where there is none."""
    local = Path(__file__).parents[2] / ".envoy" / "bin" / "envoy"
    return shutil.which(os.environ.get("MESHWRIGHT_ENVOY") or str(local)) or shutil.which("envoy")
