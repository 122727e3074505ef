"""Tests of the directory watch: the paths that it reports, and when it wakes its source."""

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
    """Watch a directory whose earlier content was already checked."""
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


async def test_written_file_is_named_without_a_full_listing(tmp_path: Path) -> None:
    """Two files are written one after the other, and only the written file is reported each time."""
    async with _watching(tmp_path) as watch:
        for name in ("a.yaml", "b.yaml"):
            (tmp_path / name).write_text("x")
            await _woken(watch)
            assert watch.take() == ({f"{tmp_path}/{name}"}, False)


async def test_burst_of_changes_is_reported_in_few_batches(tmp_path: Path) -> None:
    """The first file is reported at once, and those that follow soon are collected."""
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


async def test_file_in_a_new_folder_is_reported(tmp_path: Path) -> None:
    """Everything is in doubt until the folder is watched; then its files are named."""
    async with _watching(tmp_path) as watch:
        (tmp_path / "a" / "b").mkdir(parents=True)
        async with asyncio.timeout(DEADLINE):
            while True:  # in doubt until all inner folders are watched
                (tmp_path / "a" / "b" / "x.yaml").write_text("x")
                await _woken(watch)
                named, unsure = watch.take()
                if not unsure:
                    break
        assert named == {f"{tmp_path}/a/b/x.yaml"}


async def test_new_folder_is_watched_after_its_event_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an overflow of the queue no event names the new folder, so watches are placed again."""
    hears = FolderEvents.read

    def overflown(system: FolderEvents) -> ChangedPaths:
        return (
            replace(changed_paths, folders=False, lost=True)
            if (changed_paths := hears(system)).folders
            else changed_paths
        )

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


async def test_changes_behind_a_replaced_symlink_are_reported(tmp_path: Path) -> None:
    """Files may be reached through the symlink, and no event reports that its new target is a folder."""
    mesh = tmp_path / "mesh"
    for item in ("mesh", "one", "two"):
        (tmp_path / item).mkdir()
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


async def test_missing_directory_wakes_the_source_again_and_again(tmp_path: Path) -> None:
    """Without events everything is in doubt, so the source checks the directory after each retry interval."""
    watch = DirectoryWatch(tmp_path / "none", retry=timedelta(milliseconds=1), polling=False)
    task = asyncio.create_task(watch.run())
    for _ in range(3):
        await _woken(watch)
        assert watch.take() == (set(), True)
    task.cancel()
