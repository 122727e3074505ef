"""Tests of inotify events for a directory and all of its folders, including later ones."""

import errno
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from inotify_simple import Event, flags

from meshwright.providers.directory.files import list_directory
from meshwright.providers.directory.inotify import ChangedPaths, FolderEvents, changed_paths


@pytest.fixture
def system() -> Iterator[FolderEvents]:
    """Yield a descriptor, and close it afterwards."""
    opened = FolderEvents()
    yield opened
    opened.close()


def _event(watch: int, mask: flags, name: str = "") -> Event:
    return Event(watch, mask, 0, name)


def test_no_change_gives_no_event_and_does_not_block(system: FolderEvents, tmp_path: Path) -> None:
    """Reading a file is no change."""
    (tmp_path / "x.yaml").write_text("x")
    system.place(tmp_path)
    (tmp_path / "x.yaml").read_text()
    assert system.read() == ChangedPaths()


def _written(file: Path, draft: Path) -> None:
    del draft
    file.write_text("y")


def _renamed(file: Path, draft: Path) -> None:
    draft.write_text("y")
    draft.rename(file)


@pytest.mark.parametrize("change", [_written, _renamed])
@pytest.mark.parametrize("folder", ["mesh", "mesh/a", "mesh/a/b", "mesh/.hidden", "mesh/ä ö"])
def test_file_closed_after_writing_is_reported_as_complete(
    system: FolderEvents, tmp_path: Path, folder: str, change: Callable[[Path, Path], None]
) -> None:
    """The same holds for a file renamed into place, at any depth."""
    (tmp_path / folder).mkdir(parents=True)
    system.place(tmp_path / "mesh")
    change(tmp_path / folder / "x.yaml", tmp_path / "draft")
    assert system.read() == ChangedPaths(complete=frozenset({f"{tmp_path}/{folder}/x.yaml"}))


def test_open_deleted_or_linked_file_is_reported_as_incomplete(system: FolderEvents, tmp_path: Path) -> None:
    """More may follow for such a file; for example, a deleted file may be created again a moment later."""
    file = tmp_path / "x.yaml"
    system.place(tmp_path)
    with file.open("w") as writing:
        writing.write("a")
        writing.flush()
        assert system.read() == ChangedPaths(others=frozenset({str(file)}))
    assert system.read() == ChangedPaths(complete=frozenset({str(file)}))
    file.unlink()
    assert system.read() == ChangedPaths(others=frozenset({str(file)}))
    (tmp_path / "y.yaml").symlink_to("x.yaml")
    assert system.read() == ChangedPaths(others=frozenset({f"{tmp_path}/y.yaml"}))


def test_added_and_renamed_folders_are_watched_under_their_current_path(
    system: FolderEvents, tmp_path: Path
) -> None:
    """A folder that was moved away is no longer watched."""
    system.place(tmp_path)
    (tmp_path / "a").mkdir()
    assert system.read().folders
    system.place(tmp_path)
    (tmp_path / "a" / "x.yaml").write_text("x")
    assert system.read().complete == {f"{tmp_path}/a/x.yaml"}
    (tmp_path / "a").rename(tmp_path / "b")
    assert system.read().folders
    system.place(tmp_path)
    (tmp_path / "b" / "x.yaml").write_text("y")
    assert system.read() == ChangedPaths(complete=frozenset({f"{tmp_path}/b/x.yaml"}))
    (tmp_path / "b").rename(tmp_path.parent / f"{tmp_path.name}-gone")
    assert system.read().folders
    system.place(tmp_path)
    (tmp_path.parent / f"{tmp_path.name}-gone" / "x.yaml").write_text("z")
    assert system.read() == ChangedPaths()


def test_symlink_to_a_folder_adds_a_second_path_for_its_files(system: FolderEvents, tmp_path: Path) -> None:
    """A symlink to a parent folder causes no endless walk."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "b").symlink_to("a")
    system.place(tmp_path)
    (tmp_path / "a" / "x.yaml").write_text("x")
    assert {f"{tmp_path}/a/x.yaml", f"{tmp_path}/b/x.yaml"} <= system.read().complete


def test_removed_directory_is_reported_and_cannot_be_watched_again(
    system: FolderEvents, tmp_path: Path
) -> None:
    """Placing watches on the missing directory raises FileNotFoundError."""
    (tmp_path / "mesh").mkdir()
    system.place(tmp_path / "mesh")
    (tmp_path / "mesh").rmdir()
    assert system.read().folders
    with pytest.raises(FileNotFoundError, match="mesh"):
        system.place(tmp_path / "mesh")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_folder_without_permission_is_skipped(system: FolderEvents, tmp_path: Path) -> None:
    """The other folders are watched."""
    (tmp_path / "a").mkdir(mode=0)
    (tmp_path / "b").mkdir()
    system.place(tmp_path)
    (tmp_path / "b" / "x.yaml").write_text("x")
    assert system.read().complete == {f"{tmp_path}/b/x.yaml"}


def test_closed_descriptor_places_no_watch(tmp_path: Path) -> None:
    """Another file may have the descriptor's number by then, so a late thread gets EBADF."""
    system = FolderEvents()
    system.close()
    with pytest.raises(OSError, match="mesh") as error:
        system.place(tmp_path / "mesh")
    assert error.value.errno == errno.EBADF


@pytest.mark.parametrize("flag", [flags.Q_OVERFLOW, flags.UNMOUNT])
def test_lost_events_are_reported_with_the_remaining_ones(flag: flags) -> None:
    """An overflow or unmount sets `lost`, and the other events are still used."""
    answer = [_event(-1, flag), _event(1, flags.CLOSE_WRITE, "x.yaml")]
    assert changed_paths(answer, {1: ("/mesh",)}) == ChangedPaths(frozenset({"/mesh/x.yaml"}), lost=True)


def test_event_of_an_unknown_watch_is_ignored() -> None:
    """The watch may have been removed while the event was in the queue."""
    answer = [_event(2, flags.CLOSE_WRITE, "x.yaml"), _event(2, flags.IGNORED)]
    assert changed_paths(answer, {1: ("/mesh",)}) == ChangedPaths()


def test_folders_deeper_than_the_recursion_limit_are_watched(system: FolderEvents, tmp_path: Path) -> None:
    """Listing and watching use no recursion, so depth is not limited by Python."""
    deepest = tmp_path.joinpath(*["a"] * 200)
    deepest.mkdir(parents=True)
    (deepest / "x.yaml").write_text("x")
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        result = list_directory(tmp_path)
        system.place(tmp_path)
    finally:
        sys.setrecursionlimit(before)
    assert list(result.files) == [f"{'a/' * 200}x.yaml"]
    (deepest / "x.yaml").write_text("y")
    assert system.read().complete == {f"{deepest}/x.yaml"}


def test_folder_with_a_path_too_long_is_skipped(system: FolderEvents, tmp_path: Path) -> None:
    """The other folders are watched."""
    longest, at = tmp_path / "mesh", os.open(tmp_path, os.O_RDONLY)
    for name in ("mesh", *["a" * 250] * 17):
        os.mkdir(name, dir_fd=at)
        inner = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    system.place(longest)
    (longest / "x.yaml").write_text("y")
    assert system.read().complete == {f"{longest}/x.yaml"}
