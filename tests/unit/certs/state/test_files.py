"""Tests of files in the state directory, which are private and replaced atomically."""

import errno
import os
from pathlib import Path

import pytest

from certs.errors import StateError
from certs.state import files


def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk the old content remains, no temporary file is left, and StateError has the cause."""
    path = tmp_path / "file"
    files.write_private(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateError, match=f"^{path} cannot be written: No space left on device$"):
        files.write_private(path, b"new")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"old", [path])


def test_file_is_private_from_its_creation(tmp_path: Path) -> None:
    """A replaced file has mode 0600 and a new directory 0700, whatever the umask and the old mode."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        files.write_private(path, b"new")
        files.private_directory(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700, 0o700]


def test_only_an_empty_directory_is_made_private(tmp_path: Path) -> None:
    """An administrator may create the directory before the first start.

    A mode of 0755 with files in it is not hidden, because others could already read them.
    """
    for name in ("empty", "used"):
        (tmp_path / name).mkdir(mode=0o755)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "used" / "ledger.sqlite").write_bytes(b"")
    for name in ("empty", "used"):
        files.make_private(tmp_path / name)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"empty": 0o700, "used": 0o755}
