"""Fixtures of the program and of an API server whose behaviour a test controls."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.feature.kubernetes.api_server import ApiServer, serving
from tests.tools.forked_cli import Typed
from tests.tools.program import Program


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    """A running API server."""
    with serving(tmp_path) as made:
        yield made


@pytest.fixture
def program(tmp_path: Path, typed: Typed, api: ApiServer) -> Iterator[Program]:
    """The program, which reads that cluster and no directory."""
    made = Program(tmp_path / "state", tmp_path, typed)
    made.reads = ("--kubernetes", "--kubeconfig", str(api.kubeconfig))
    made.environment["MESHWRIGHT_KUBERNETES_REPORTS"] = "no"  # this API server accepts no writes
    yield made
    made.end()
