"""Tests of the server that other tests run (`tests/tools/program.py`)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.program import Server


def test_wait_for_a_server_that_ended_fails_with_its_last_sentence(tmp_path: Path) -> None:
    """A server that refuses to start writes a sentence beside the JSON lines of its log."""
    log = tmp_path / "log"
    log.write_text('{"event": "CA created"}\nmeshwright: 127.0.0.1:4711 is in use\n')
    ended = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""], text=True)
    ended.wait()
    with pytest.raises(AssertionError, match="is in use"):
        Server(ended, log).until(lambda: False)
