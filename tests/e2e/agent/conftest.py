"""Fixtures for tests of the agent: programs, and a live mesh of a shop and its customer."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.e2e.agent.scenes import APPLICATION, MESH, PORT, Scene, answer
from tests.golden.running_mesh import LiveMesh, serve


@pytest.fixture(autouse=True)
def _separate_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the legacy backend a lock file of the test."""
    monkeypatch.setenv("XTABLES_LOCKFILE", str(tmp_path / "xtables.lock"))


def missing_for_namespaces() -> str:
    """Return what is missing for tests in network namespaces, or an empty string."""
    if os.geteuid() != 0:
        return "it needs root"
    needed = ("ip", "iptables-restore", "ip6tables-restore", "nsenter", "unshare")
    lacking = [name for name in needed if shutil.which(name) is None]
    return f"it needs {', '.join(lacking)}" if lacking else ""


@pytest.fixture
async def ends() -> AsyncIterator[AsyncExitStack]:
    """End the programs that a test started."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def scene(tmp_path: Path, envoy: str, meshwright: str, ends: AsyncExitStack) -> Scene:
    """A mesh of a shop and its customer; the shop's application runs."""
    await serve(ends, APPLICATION, PORT, answer)
    return Scene(await LiveMesh.start(tmp_path, MESH, ends), envoy, meshwright, ends)
