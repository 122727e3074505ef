"""Tests of a directory that is suddenly empty: its objects are held, reported, and removed after the hold."""

import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from meshwright.providers.contract import Counts
from meshwright.providers.directory.source import DirectorySource
from tests.meshes.texts import account
from tests.unit.providers.directory.running_source import WatchedSource, running

NEVER, AT_ONCE = timedelta(hours=1), timedelta(0)


class Watched(WatchedSource[DirectorySource]):
    """A running source with shortcuts for its names and problem codes."""

    def names(self) -> list[str]:
        """Return the names of the objects in force."""
        return [key.name for key in self.source.objects()]

    def codes(self) -> list[str]:
        """Return the codes of the source's problems."""
        return [problem.code for problem in self.source.problems()]


def _running(path: Path, hold: timedelta, reread: timedelta) -> AbstractAsyncContextManager[Watched]:
    settle = timedelta(milliseconds=20)
    source = DirectorySource(path, lambda: datetime.now(UTC), settle=settle, hold=hold, reread=reread)
    source.load()
    return running(Watched(source))


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    """Create a directory with two manifests."""
    path = tmp_path / "mesh"
    path.mkdir()
    for name in ("a", "b"):
        (path / f"{name}.yaml").write_text(account(name))
    return path


def _emptied(mesh: Path) -> None:
    for file in mesh.iterdir():
        file.unlink()


def _replaced(mesh: Path) -> None:
    """Replace the directory with an empty one, as an unmounted file system does."""
    shutil.move(mesh, mesh.with_name("elsewhere"))
    mesh.mkdir()


def _truncated(mesh: Path) -> None:
    """Leave empty files, as a failed `kubectl get ... > a.yaml` does."""
    for file in mesh.iterdir():
        file.write_text("")


def _told_nothing(mesh: Path) -> None:
    """Write the output of `kubectl get -o yaml` without objects, and a file with only a comment."""
    (mesh / "a.yaml").write_text("apiVersion: v1\nkind: List\nitems: []\n")
    (mesh / "b.yaml").write_text("# nothing\n---\n")


EMPTY = (_emptied, _replaced, _truncated, _told_nothing)


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("reread", [timedelta(hours=1), timedelta(milliseconds=50)])
async def test_empty_directory_keeps_all_objects_until_a_manifest_appears(
    mesh: Path, empty: Callable[[Path], None], reread: timedelta
) -> None:
    """All objects stay in force with problem MW1110; a new manifest then replaces them."""
    async with _running(mesh, NEVER, reread) as watched:
        empty(mesh)
        await watched.until(lambda: watched.codes() == ["MW1110"])
        fresh = watched.source.freshness()
        assert (watched.names(), fresh.held, fresh.error) == (["a", "b"], ("all manifests",), "")
        assert watched.source.counts() == Counts(good=2)
        (mesh / "c.yaml").write_text(account("c"))
        await watched.until(lambda: watched.names() == ["c"])
        assert (watched.codes(), watched.source.freshness().held) == ([], ())


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("hold", [AT_ONCE, timedelta(milliseconds=100)])
async def test_empty_directory_removes_all_objects_after_the_hold(
    mesh: Path, empty: Callable[[Path], None], hold: timedelta
) -> None:
    """A hold of 0 removes them at once, which is the negative control."""
    async with _running(mesh, hold, timedelta(hours=1)) as watched:
        empty(mesh)
        await watched.until(lambda: watched.names() == [])
        assert (watched.codes(), watched.source.freshness().held) == ([], ())


async def test_rewritten_only_file_is_used_once_it_is_complete(mesh: Path) -> None:
    """The file is empty, then cut off within a line, then complete with one more object."""
    (mesh / "b.yaml").unlink()
    async with _running(mesh, NEVER, timedelta(hours=1)) as watched:
        text = account("a") + "---\n" + account("c")
        (mesh / "a.yaml").write_text("")
        await watched.until(lambda: watched.codes() == ["MW1110"])
        (mesh / "a.yaml").write_text(text[: len(account("a")) + 20])
        (mesh / "a.yaml").write_text(text)
        await watched.until(lambda: watched.names() == ["a", "c"])
        assert (watched.codes(), watched.source.freshness().held) == ([], ())


async def test_removed_file_takes_effect_while_other_files_remain(mesh: Path) -> None:
    """Only an empty directory is held back; the removal of one file is intended."""
    async with _running(mesh, NEVER, timedelta(hours=1)) as watched:
        (mesh / "a.yaml").unlink()
        await watched.until(lambda: watched.names() == ["b"])
        assert watched.codes() == []
