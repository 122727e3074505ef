"""What the system tells of folders: what happens in any of them, in those that come later as well."""

import errno
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from inotify_simple import Event, flags

from meshwright.providers.directory.files import list_directory
from meshwright.providers.directory.inotify import ChangedPaths, FolderEvents, heard


@pytest.fixture
def system() -> Iterator[FolderEvents]:
    """Return a descriptor that is closed in the end."""
    opened = FolderEvents()
    yield opened
    opened.close()


def _event(watch: int, mask: flags, name: str = "") -> Event:
    return Event(watch, mask, 0, name)


def test_nothing_happened(system: FolderEvents, tmp_path: Path) -> None:
    """A descriptor without news says nothing, and waits for none; reading files is no news."""
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
def test_what_is_written_to_the_end_is_complete(
    system: FolderEvents, tmp_path: Path, folder: str, change: Callable[[Path, Path], None]
) -> None:
    """However deep its folder lies."""
    (tmp_path / folder).mkdir(parents=True)
    system.place(tmp_path / "mesh")
    change(tmp_path / folder / "x.yaml", tmp_path / "draft")
    assert system.read() == ChangedPaths(complete=frozenset({f"{tmp_path}/{folder}/x.yaml"}))


def test_of_what_is_being_written_more_may_come(system: FolderEvents, tmp_path: Path) -> None:
    """So of what is deleted: it may be there again a moment later."""
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


def test_folders_that_come_are_watched_when_they_are_placed(system: FolderEvents, tmp_path: Path) -> None:
    """And those that go are not; a folder that was renamed is known by its new name alone."""
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


def test_a_symlink_to_a_folder_gives_it_a_second_path(system: FolderEvents, tmp_path: Path) -> None:
    """One that leads to a folder above is no endless walk."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "b").symlink_to("a")
    system.place(tmp_path)
    (tmp_path / "a" / "x.yaml").write_text("x")
    assert {f"{tmp_path}/a/x.yaml", f"{tmp_path}/b/x.yaml"} <= system.read().complete


def test_the_directory_itself_goes(system: FolderEvents, tmp_path: Path) -> None:
    """It is heard; watching it anew says that it is not there."""
    (tmp_path / "mesh").mkdir()
    system.place(tmp_path / "mesh")
    (tmp_path / "mesh").rmdir()
    assert system.read().folders
    with pytest.raises(FileNotFoundError, match="mesh"):
        system.place(tmp_path / "mesh")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_a_folder_that_nobody_may_look_into_is_passed_over(system: FolderEvents, tmp_path: Path) -> None:
    """The others are watched."""
    (tmp_path / "a").mkdir(mode=0)
    (tmp_path / "b").mkdir()
    system.place(tmp_path)
    (tmp_path / "b" / "x.yaml").write_text("x")
    assert system.read().complete == {f"{tmp_path}/b/x.yaml"}


def test_after_it_is_closed_no_watch_is_placed(tmp_path: Path) -> None:
    """A thread may be at it: its descriptor's number may be another's by then."""
    system = FolderEvents()
    system.close()
    with pytest.raises(OSError, match="mesh") as error:
        system.place(tmp_path / "mesh")
    assert error.value.errno == errno.EBADF


@pytest.mark.parametrize("flag", [flags.Q_OVERFLOW, flags.UNMOUNT])
def test_events_that_were_lost_are_said(flag: flags) -> None:
    """What was not lost is heard all the same."""
    said = [_event(-1, flag), _event(1, flags.CLOSE_WRITE, "x.yaml")]
    assert heard(said, {1: ("/mesh",)}) == ChangedPaths(frozenset({"/mesh/x.yaml"}), lost=True)


def test_a_folder_that_is_not_known_any_more_is_passed_over() -> None:
    """Its watch was taken away while the event was on its way."""
    said = [_event(2, flags.CLOSE_WRITE, "x.yaml"), _event(2, flags.IGNORED)]
    assert heard(said, {1: ("/mesh",)}) == ChangedPaths()


def test_how_deep_folders_lie_is_no_matter(system: FolderEvents, tmp_path: Path) -> None:
    """They are gone through and watched without recursion, which ends somewhere."""
    deepest = tmp_path.joinpath(*["a"] * 200)
    deepest.mkdir(parents=True)
    (deepest / "x.yaml").write_text("x")
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        found = list_directory(tmp_path)
        system.place(tmp_path)
    finally:
        sys.setrecursionlimit(before)
    assert list(found.files) == [f"{'a/' * 200}x.yaml"]
    (deepest / "x.yaml").write_text("y")
    assert system.read().complete == {f"{deepest}/x.yaml"}


def test_a_folder_whose_path_is_too_long_is_passed_over(system: FolderEvents, tmp_path: Path) -> None:
    """The others are watched."""
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
