"""Tests of links: a process of root writes through no link of another user, and truncates no foreign file."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from certs.errors import StateError
from certs.state import files, links
from meshwright.agent.hosts.file import HostsFile
from meshwright.cli.printing import files as printed
from meshwright.controller.errors import StartupError
from meshwright.controller.process import lock

MALLORY = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a link away")


def _locked(path: Path) -> None:
    with files.locked(path):
        pass


def _held(path: Path) -> None:
    with lock.hold_lock(path.parent):
        pass


def _put_names(path: Path) -> None:
    HostsFile(path).put(["10.0.0.1 store"])


def _written(path: Path) -> None:
    printed.write(path, b"new", 0o644)


WAYS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a lock of the state directory": ("ca.lock", _locked),
    "a database or its journal": ("ledger.sqlite-journal", files.touch_private),
    "the lock of a server": (lock.LOCK_FILE, _held),
    "the hosts file": ("hosts", _put_names),
}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Return a file of root that must not change."""
    path = tmp_path / "victim"
    path.write_text("whole")
    path.chmod(0o640)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory of another user."""
    path = tmp_path / "mallory"
    path.mkdir(mode=0o755)
    if os.geteuid() == 0:
        os.chown(path, MALLORY, MALLORY)
    return path


def _given_away(link: Path, to: Path | str) -> Path:
    link.symlink_to(to)
    os.chown(link, MALLORY, MALLORY, follow_symlinks=False)
    return link


@as_root
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(
    "kind", ["symbolic link", "symbolic link to a file that is missing", "hard link", "FIFO"]
)
def test_link_or_fifo_of_another_user_in_place_of_a_file_is_refused(
    victim: Path, folder: Path, how: str, kind: str
) -> None:
    """The target keeps its content and mode, and a missing target is not created."""
    name, write = WAYS[how]
    missing, planted = victim.with_name("missing"), folder / name
    match kind:
        case "symbolic link":
            _given_away(planted, victim)
        case "symbolic link to a file that is missing":
            _given_away(planted, missing)
        case "hard link":
            planted.hardlink_to(victim)
        case _:
            os.mkfifo(planted)
            os.chown(planted, MALLORY, MALLORY)
    with pytest.raises((OSError, StateError, StartupError)):
        write(planted)
    assert (victim.read_text(), stat.S_IMODE(victim.stat().st_mode)) == ("whole", 0o640)
    assert not missing.exists()


@as_root
def test_output_file_replaces_a_link(victim: Path, folder: Path) -> None:
    """An example is `--out` of a command: the link is replaced, and its target does not change."""
    out = _given_away(folder / "values.yaml", victim)
    _written(out)
    assert (out.read_bytes(), out.is_symlink(), victim.read_text()) == (b"new", False, "whole")
    assert [path.name for path in folder.iterdir()] == ["values.yaml"]


@as_root
@pytest.mark.parametrize("write", [_written, files.touch_private, _put_names])
def test_directory_behind_a_link_of_another_user_is_not_written_to(
    tmp_path: Path, folder: Path, write: Callable[[Path], None]
) -> None:
    """The write is refused although the file does not exist there."""
    there = tmp_path / "there"
    there.mkdir()
    way = _given_away(folder / "out", there)
    with pytest.raises(
        PermissionError,
        match=f"out is a symbolic link that belongs to user {MALLORY}; links of other users are not followed",
    ):
        write(way / "file")
    assert [*there.iterdir()] == []


@as_root
def test_empty_directory_behind_a_link_of_another_user_keeps_its_mode(tmp_path: Path, folder: Path) -> None:
    """An empty directory of ours is made private, but not through such a link."""
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    way = _given_away(folder / "run", there)
    with pytest.raises(PermissionError):
        files.make_private(way)
    with pytest.raises(
        StateError, match=f"{way} cannot be made: run is a symbolic link that belongs to user {MALLORY}"
    ):
        files.private_directory(way)
    assert stat.S_IMODE(there.stat().st_mode) == 0o755


def test_own_links_are_followed(tmp_path: Path) -> None:
    """Links of an administrator may be absolute or relative, to a directory or a file, and in a chain."""
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "absolute").symlink_to(there)
    (tmp_path / "relative").symlink_to("./absolute/../there")
    (there / "lock").symlink_to("other")
    files.touch_private(tmp_path / "relative" / "lock")
    assert sorted(path.name for path in there.iterdir()) == ["lock", "other"]
    files.make_private(tmp_path / "relative" / "a" / "b")
    assert (there / "a" / "b").is_dir()


def test_loop_of_links_is_an_error(tmp_path: Path) -> None:
    """The error is the same as that of the kernel."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels of symbolic links"), links.place(tmp_path / "a" / "x"):
        pass


def test_broken_link_is_an_error_and_creates_no_parent_directory(tmp_path: Path) -> None:
    """FileNotFoundError is raised for the missing target."""
    (tmp_path / "a").symlink_to(tmp_path / "none" / "here")
    with pytest.raises(FileNotFoundError):
        files.make_private(tmp_path / "a" / "x")


def test_hard_link_is_accepted_only_in_a_private_directory(tmp_path: Path) -> None:
    """A backup may use hard links. In a directory that others can write to, a second link is refused."""
    tmp_path.chmod(0o700)
    files.touch_private(tmp_path / "ledger.sqlite")
    (tmp_path / "backup").hardlink_to(tmp_path / "ledger.sqlite")
    files.touch_private(tmp_path / "ledger.sqlite")
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match=r"ledger\.sqlite has 2 hard links"):
        files.touch_private(tmp_path / "ledger.sqlite")
