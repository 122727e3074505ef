"""One server per state directory."""

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from meshwright.controller.errors import StartupError
from meshwright.controller.process.lock import LOCK_FILE, held, prepare


def test_a_second_holder_is_told_who_holds_it(tmp_path: Path) -> None:
    """The sentence names the directory and the process."""
    with held(tmp_path), pytest.raises(StartupError) as caught, held(tmp_path):
        pass
    assert str(caught.value) == (
        f"the state directory {tmp_path} is in use by another meshwright (process {os.getpid()})"
    )


def test_the_lock_is_free_after_its_holder(tmp_path: Path) -> None:
    """A file that stays is no lock."""
    with held(tmp_path):
        pass
    with held(tmp_path):
        assert (tmp_path / LOCK_FILE).stat().st_mode & 0o777 == 0o600


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    """A command may have it for a moment when the server starts."""
    with contextlib.ExitStack() as holding, ThreadPoolExecutor(1) as executor:
        holding.enter_context(held(tmp_path))
        started = threading.Event()

        def waiting() -> str:
            started.set()
            with held(tmp_path, 60):
                return "held"

        waited = executor.submit(waiting)
        started.wait(60)
        holding.close()
        assert waited.result(60) == "held"


def test_the_state_directory_is_made_private(tmp_path: Path) -> None:
    """Nobody else may look into it."""
    prepare(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_a_file_in_its_place_is_said(tmp_path: Path) -> None:
    """No traceback, a sentence."""
    (tmp_path / "state").write_text("")
    with pytest.raises(StartupError, match=r"cannot create the state directory .*: File exists"):
        prepare(tmp_path / "state")
