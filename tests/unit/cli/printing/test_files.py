"""Tests of written files: whole content, and private keys."""

from pathlib import Path

import pytest

from meshwright.cli.printing.files import write, write_credentials
from tests.tools.volumes import short_files


def test_credentials_are_written_as_files_with_a_private_key(tmp_path: Path) -> None:
    """The key has mode 0600, and a new directory 0700. A given trust domain is a fourth file."""
    out = tmp_path / "a" / "b"
    write_credentials(out, b"CHAIN", b"KEY", b"CA")
    assert {path.name: (path.read_bytes(), path.stat().st_mode & 0o777) for path in out.iterdir()} == {
        "proxy.pem": (b"CHAIN", 0o644),
        "proxy.key": (b"KEY", 0o600),
        "ca.pem": (b"CA", 0o644),
    }
    assert out.stat().st_mode & 0o777 == 0o700
    write_credentials(out, b"CHAIN", b"KEY", b"CA", "mesh.example")
    assert (out / "trust-domain").read_text() == "mesh.example\n"


def test_old_file_with_other_permissions_is_replaced(tmp_path: Path) -> None:
    """The new key has mode 0600, although users could read the old one."""
    path = tmp_path / "proxy.key"
    path.write_bytes(b"OLD")
    path.chmod(0o644)
    write(path, b"NEW", 0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"NEW", 0o600)


def test_failed_replacement_leaves_no_temporary_file(tmp_path: Path) -> None:
    """A directory in place of the file is an error, and no other file remains."""
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError, match="x"):
        write(tmp_path / "x", b"", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_credentials_without_room_leave_the_old_ones(tmp_path: Path) -> None:
    """A failed write does not leave a new key beside an old certificate."""
    write_credentials(tmp_path, b"CHAIN", b"KEY", b"CA")
    with short_files(100):
        for out in (tmp_path, tmp_path / "new"):
            with pytest.raises(OSError, match="File too large"):
                write_credentials(out, b"C" * 200, b"NEW", b"NEW")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "proxy.pem": b"CHAIN",
        "proxy.key": b"KEY",
        "ca.pem": b"CA",
    }
