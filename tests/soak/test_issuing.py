"""Test of SIGKILL during the issue of certificates: everything issued is known to the next start.

`make test` runs the short form; MESHWRIGHT_SOAK=long is the full form (`make soak-issuing`).
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.tools.forked_cli import ROOT

LONG: Final = os.environ.get("MESHWRIGHT_SOAK") == "long"
KILLS: Final = 200 if LONG else 24


def test_killed_issuer_loses_nothing_that_it_has_issued(tmp_path: Path) -> None:
    """This holds for certificates, revocations, the CA, and the pairs of services and of the server."""
    seed = int.from_bytes(os.urandom(4), "big") if LONG else 7
    program = (sys.executable, "-m", "tests.soak.issuing", str(tmp_path), str(KILLS), str(seed))
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-3000:]}"
    result = json.loads(done.stdout)
    sys.stdout.write(f"seed {seed}: {result}\n")
    assert result["kills"] == KILLS
    assert result["said"] > KILLS  # else they were killed before anything began
