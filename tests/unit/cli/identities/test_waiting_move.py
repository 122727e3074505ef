"""Tests of a move that waits for the end of the server that uses the directory."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.custody import opened
from meshwright.cli.errors import IssuingError
from meshwright.cli.identities.mesh_state import moved
from meshwright.controller.process import lock
from meshwright.mesh.names import TrustDomain


@pytest.fixture
def flags(tmp_path: Path) -> dict[str, object]:
    """Return settings for a directory with a mesh, and for a store whose kubeconfig is missing."""
    state = tmp_path / "state"
    with opened(state, TrustDomain("cluster.local"), datetime.now(UTC)):
        pass
    lock.prepare(state, shared=False)
    kubeconfig = tmp_path / "no-kubeconfig"
    return {"state": state, "kubernetes": True, "store": "kubernetes", "kubeconfig": kubeconfig}


def test_move_of_a_directory_in_use_is_refused(flags: dict[str, object]) -> None:
    """The server would go on writing into the directory after the move."""
    with (
        lock.hold_lock(Path(str(flags["state"]))),
        pytest.raises(IssuingError, match="stop the server first"),
    ):
        moved(flags)


def test_move_begins_after_the_end_of_the_server(flags: dict[str, object]) -> None:
    """With a time to wait, the lock is tried again. The next error is the missing kubeconfig."""
    is_held, end = threading.Event(), threading.Event()

    def serve() -> None:
        with lock.hold_lock(Path(str(flags["state"]))):
            is_held.set()
            end.wait()

    server = threading.Thread(target=serve)
    server.start()
    is_held.wait()
    threading.Timer(0.05, end.set).start()
    with pytest.raises(IssuingError, match="no-kubeconfig"):
        moved(flags, 60.0)
    assert end.is_set()
    server.join()
