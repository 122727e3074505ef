"""What a watch makes of the system's events: which paths they name, and when somebody is woken for them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from meshwright.providers.directory.inotify import ChangedPaths, FolderEvents
from meshwright.providers.directory.watch import DirectoryWatch

DEADLINE = 20.0


@contextlib.asynccontextmanager
async def _watching(path: Path) -> AsyncIterator[DirectoryWatch]:
    """Watch a directory; what was there before is looked at already."""
    watch = DirectoryWatch(path, retry=timedelta(seconds=60), polling=False)
    task = asyncio.create_task(watch.run())
    try:
        await _woken(watch)
        assert watch.take() == (set(), True)
        yield watch
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _woken(watch: DirectoryWatch) -> None:
    async with asyncio.timeout(DEADLINE):
        await watch.woken.wait()
    watch.woken.clear()


async def test_what_events_name_is_named_and_nothing_else_is_in_doubt(tmp_path: Path) -> None:
    """Two files one after the other: nobody need list the directory."""
    async with _watching(tmp_path) as watch:
        for name in ("a.yaml", "b.yaml"):
            (tmp_path / name).write_text("x")
            await _woken(watch)
            assert watch.take() == ({f"{tmp_path}/{name}"}, False)


async def test_a_burst_is_gathered(tmp_path: Path) -> None:
    """The first file is told of at once, those that come soon after it together."""
    async with _watching(tmp_path) as watch:
        for number in range(50):
            (tmp_path / f"{number}.yaml").write_text("x")
            await asyncio.sleep(0)
        await _woken(watch)
        named = watch.take()[0]
        wakes = 1
        while len(named) < 50:
            await _woken(watch)
            named |= watch.take()[0]
            wakes += 1
        assert wakes <= 10


async def test_in_a_folder_that_comes_nothing_is_missed(tmp_path: Path) -> None:
    """All is in doubt until the folder is watched; then its files are named."""
    async with _watching(tmp_path) as watch:
        (tmp_path / "a" / "b").mkdir(parents=True)
        async with asyncio.timeout(DEADLINE):
            while True:  # in doubt as long as a folder within may not be watched
                (tmp_path / "a" / "b" / "x.yaml").write_text("x")
                await _woken(watch)
                named, unsure = watch.take()
                if not unsure:
                    break
        assert named == {f"{tmp_path}/a/b/x.yaml"}


async def test_a_folder_is_watched_whose_coming_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When there were more events than the system keeps, nobody says which folders came."""
    hears = FolderEvents.read

    def overflown(system: FolderEvents) -> ChangedPaths:
        return replace(found, folders=False, lost=True) if (found := hears(system)).folders else found

    async with _watching(tmp_path) as watch:
        monkeypatch.setattr(FolderEvents, "read", overflown)
        (tmp_path / "a").mkdir()
        async with asyncio.timeout(DEADLINE):
            while True:
                await _woken(watch)
                named, unsure = watch.take()
                if not unsure:
                    break
                (tmp_path / "a" / "x.yaml").write_text("x")
        assert named == {f"{tmp_path}/a/x.yaml"}


async def test_where_a_symlink_leads_by_now_nothing_is_missed(tmp_path: Path) -> None:
    """Files may be links through it, and no event says that it leads to a folder."""
    mesh = tmp_path / "mesh"
    for each in ("mesh", "one", "two"):
        (tmp_path / each).mkdir()
    (mesh / "now").symlink_to("../one")
    async with _watching(mesh) as watch:
        (mesh / "next").symlink_to("../two")
        (mesh / "next").rename(mesh / "now")
        async with asyncio.timeout(DEADLINE):
            named = set[str]()
            while f"{mesh}/now/x.yaml" not in named:
                (tmp_path / "two" / "x.yaml").write_text("x")
                await _woken(watch)
                named |= watch.take()[0]


async def test_where_there_are_no_events_to_be_had_it_is_looked_again_and_again(tmp_path: Path) -> None:
    """A directory that is not there says so once, and is in doubt whenever it is asked."""
    watch = DirectoryWatch(tmp_path / "none", retry=timedelta(milliseconds=1), polling=False)
    task = asyncio.create_task(watch.run())
    for _ in range(3):
        await _woken(watch)
        assert watch.take() == (set(), True)
    task.cancel()
