"""Where the programs are."""

import os
import shutil
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def meshwright() -> str:
    """Return the installed command."""
    return str(Path(sys.executable).parent / "meshwright")


@pytest.fixture(autouse=True)
def _lock_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the legacy backend lock a file of the test's own."""
    monkeypatch.setenv("XTABLES_LOCKFILE", str(tmp_path / "xtables.lock"))


def missing_for_namespaces() -> str:
    """Say what tests in network namespaces lack here; empty if nothing."""
    if os.geteuid() != 0:
        return "it needs root"
    needed = ("ip", "iptables-restore", "ip6tables-restore", "nsenter", "unshare")
    lacking = [name for name in needed if shutil.which(name) is None]
    return f"it needs {', '.join(lacking)}" if lacking else ""
