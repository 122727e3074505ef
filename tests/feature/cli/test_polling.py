"""Tests of gRPC's polling setting: it is set before the import of gRPC, and gRPC supports it."""

import os
import subprocess
import sys

import pytest

from meshwright.controller.process.polling import EXPERIMENTS, READ_WHERE_IT_POLLS, read_where_it_polls
from tests.tools.deadline import HANG_SECONDS

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
        timeout=HANG_SECONDS,
        check=False,
    )


def test_polling_is_set_before_grpc_is_imported() -> None:
    """The gRPC library reads the variable at its import, so a later value has no effect."""
    assert _run(_SERVE).stderr == f"imported with {READ_WHERE_IT_POLLS}\n"


def test_grpc_supports_the_polling_experiment() -> None:
    """An unsupported experiment causes a warning of gRPC.

    In that case remove the setting and measure a push again.
    """
    assert "experiment" not in _run(_SERVER).stderr


def test_users_own_grpc_experiments_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that the user has set is not overwritten, because the variable belongs to gRPC's users."""
    monkeypatch.setenv(EXPERIMENTS, "monitoring_experiment")
    read_where_it_polls()
    assert os.environ[EXPERIMENTS] == "monitoring_experiment"
