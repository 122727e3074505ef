"""Files are written whole, and keys are private."""

from pathlib import Path

import pytest

from cli.output import write, write_credentials


def test_credentials_are_three_files_the_key_for_its_owner_alone(tmp_path: Path) -> None:
    """And the directory too, where it is made."""
    out = tmp_path / "a" / "b"
    write_credentials(out, b"CHAIN", b"KEY", b"CA")
    assert {path.name: (path.read_bytes(), path.stat().st_mode & 0o777) for path in out.iterdir()} == {
        "proxy.pem": (b"CHAIN", 0o644),
        "proxy.key": (b"KEY", 0o600),
        "ca.pem": (b"CA", 0o644),
    }
    assert out.stat().st_mode & 0o777 == 0o700


def test_an_old_file_of_other_permissions_is_replaced(tmp_path: Path) -> None:
    """The new key is not readable for whoever could read the old one."""
    path = tmp_path / "proxy.key"
    path.write_bytes(b"OLD")
    path.chmod(0o644)
    write(path, b"NEW", 0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"NEW", 0o600)


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    """A directory stands where the file should be."""
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError, match="x"):
        write(tmp_path / "x", b"", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
