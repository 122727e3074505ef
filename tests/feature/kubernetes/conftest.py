"""The program, and an API server for it that does what a test wants."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.feature.kubernetes.api_server import ApiServer, serving
from tests.tools.forked_cli import Typed
from tests.tools.program import Program


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    """Return an API server that is there."""
    with serving(tmp_path) as made:
        yield made


@pytest.fixture
def program(tmp_path: Path, typed: Typed, api: ApiServer) -> Iterator[Program]:
    """Return the program, which reads that cluster and no directory."""
    made = Program(tmp_path / "state", tmp_path, typed)
    made.reads = ("--kubernetes", "--kubeconfig", str(api.kubeconfig))
    made.environment["MESHWRIGHT_KUBERNETES_REPORTS"] = "no"  # this API server takes none
    yield made
    made.end()
