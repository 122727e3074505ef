"""gRPC is told how to wait for its sockets before it is imported, and knows what it is told."""

import os
import subprocess
import sys

import pytest

from meshwright.controller.process.polling import EXPERIMENTS, READ_WHERE_IT_POLLS, read_where_it_polls

_SERVE = """
import os, sys

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "grpc":
            raise SystemExit(f"imported with {os.environ.get('GRPC_EXPERIMENTS')}")

sys.meta_path.insert(0, Finder())
sys.argv[1:] = ["serve", "--config", "there-is-none.yaml"]
from meshwright.cli.main import main
main()
"""
_SERVER = """
import asyncio
from meshwright.controller.process.polling import read_where_it_polls
read_where_it_polls()
import grpc.aio
async def served():
    grpc.aio.server()
asyncio.run(served())
"""


def _run(program: str) -> subprocess.CompletedProcess[str]:
    environment = {"GRPC_VERBOSITY": "ERROR", "PYTHONPATH": ":".join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_is_said_before_grpc_is_imported() -> None:
    """Later, it would not be heard."""
    assert _run(_SERVE).stderr == f"imported with {READ_WHERE_IT_POLLS}\n"


def test_grpc_knows_it() -> None:
    """One that does not says so; then this can go, and a push must be measured anew."""
    assert "experiment" not in _run(_SERVER).stderr


def test_who_says_something_else_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is gRPC's, and its users'."""
    monkeypatch.setenv(EXPERIMENTS, "monitoring_experiment")
    read_where_it_polls()
    assert os.environ[EXPERIMENTS] == "monitoring_experiment"
