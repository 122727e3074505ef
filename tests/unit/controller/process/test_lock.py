"""Tests of the state directory's lock: one server per directory."""

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from meshwright.controller.errors import StartupError
from meshwright.controller.process.lock import LOCK_FILE, hold_lock, prepare


def test_second_holder_gets_an_error_with_the_first_one(tmp_path: Path) -> None:
    """The error names the directory and the process that holds the lock."""
    with hold_lock(tmp_path), pytest.raises(StartupError) as caught, hold_lock(tmp_path):
        pass
    assert str(caught.value) == (
        f"the state directory {tmp_path} is in use by another meshwright (process {os.getpid()})"
    )


def test_lock_is_free_after_its_holder(tmp_path: Path) -> None:
    """The lock file stays with mode 0600, and can be locked again."""
    with hold_lock(tmp_path):
        pass
    with hold_lock(tmp_path):
        assert (tmp_path / LOCK_FILE).stat().st_mode & 0o777 == 0o600


def test_lock_is_waited_for_within_a_timeout(tmp_path: Path) -> None:
    """The server waits, because a command may hold the lock for a moment."""
    with contextlib.ExitStack() as holding, ThreadPoolExecutor(1) as executor:
        holding.enter_context(hold_lock(tmp_path))
        started = threading.Event()

        def waiting() -> str:
            started.set()
            with hold_lock(tmp_path, 60):
                return "held"

        waited = executor.submit(waiting)
        started.wait(60)
        holding.close()
        assert waited.result(60) == "held"


def test_state_directory_is_created_with_mode_0700(tmp_path: Path) -> None:
    """The directory is created with mode 0700, so that other users cannot read it."""
    prepare(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_file_in_place_of_the_state_directory_is_an_error(tmp_path: Path) -> None:
    """The error is one sentence with the cause."""
    (tmp_path / "state").write_text("")
    with pytest.raises(StartupError, match=r"cannot create the state directory .*: File exists"):
        prepare(tmp_path / "state")
