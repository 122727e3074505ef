"""A directory that suddenly holds nothing: held back, said, and believed in the end."""

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
    """A running source, in few words."""

    def names(self) -> list[str]:
        """Return the names of the objects in force."""
        return [key.name for key in self.source.objects()]

    def codes(self) -> list[str]:
        """Return the codes of what is wrong."""
        return [each.code for each in self.source.problems()]


def _running(path: Path, hold: timedelta, reread: timedelta) -> AbstractAsyncContextManager[Watched]:
    settle = timedelta(milliseconds=20)
    source = DirectorySource(path, lambda: datetime.now(UTC), settle=settle, hold=hold, reread=reread)
    source.load()
    return running(Watched(source))


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    """Make a directory of two manifests."""
    found = tmp_path / "mesh"
    found.mkdir()
    for name in ("a", "b"):
        (found / f"{name}.yaml").write_text(account(name))
    return found


def _emptied(mesh: Path) -> None:
    for file in mesh.iterdir():
        file.unlink()


def _replaced(mesh: Path) -> None:
    """Put an empty directory in its place, as an unmounted file system does."""
    shutil.move(mesh, mesh.with_name("elsewhere"))
    mesh.mkdir()


def _truncated(mesh: Path) -> None:
    """Leave what a command leaves that failed: `kubectl get ... > a.yaml`."""
    for file in mesh.iterdir():
        file.write_text("")


def _told_nothing(mesh: Path) -> None:
    """Write what `kubectl get -o yaml` prints where there is nothing, and a comment."""
    (mesh / "a.yaml").write_text("apiVersion: v1\nkind: List\nitems: []\n")
    (mesh / "b.yaml").write_text("# nothing\n---\n")


EMPTY = (_emptied, _replaced, _truncated, _told_nothing)


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("reread", [timedelta(hours=1), timedelta(milliseconds=50)])
async def test_it_is_held_back_and_said_until_something_is_there_again(
    mesh: Path, empty: Callable[[Path], None], reread: timedelta
) -> None:
    """Everything stays in force; what is there afterwards is believed."""
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
async def test_it_is_believed_in_the_end(mesh: Path, empty: Callable[[Path], None], hold: timedelta) -> None:
    """At once where nothing is held back: the negative control; else after the time that is set."""
    async with _running(mesh, hold, timedelta(hours=1)) as watched:
        empty(mesh)
        await watched.until(lambda: watched.names() == [])
        assert (watched.codes(), watched.source.freshness().held) == ([], ())


async def test_an_only_file_that_is_written_anew_is_believed_when_it_is_whole(mesh: Path) -> None:
    """It was empty, then cut off within a line, and is what it was, with something more."""
    (mesh / "b.yaml").unlink()
    async with _running(mesh, NEVER, timedelta(hours=1)) as watched:
        text = account("a") + "---\n" + account("c")
        (mesh / "a.yaml").write_text("")
        await watched.until(lambda: watched.codes() == ["MW1110"])
        (mesh / "a.yaml").write_text(text[: len(account("a")) + 20])
        (mesh / "a.yaml").write_text(text)
        await watched.until(lambda: watched.names() == ["a", "c"])
        assert (watched.codes(), watched.source.freshness().held) == ([], ())


async def test_a_file_that_is_removed_while_others_stay_is_no_emptiness(mesh: Path) -> None:
    """Somebody has removed it, and means it."""
    async with _running(mesh, NEVER, timedelta(hours=1)) as watched:
        (mesh / "a.yaml").unlink()
        await watched.until(lambda: watched.names() == ["b"])
        assert watched.codes() == []
