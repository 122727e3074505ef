"""Tests of a server of which a part fails: it ends, and names that part."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from meshwright.controller.app import run
from meshwright.controller.errors import StartupError
from meshwright.controller.process.tasks import TaskEnded
from meshwright.controller.settings.settings import Settings, load
from meshwright.providers.directory.files import DirectoryError
from meshwright.providers.directory.source import DirectorySource


def _settings(tmp_path: Path) -> Settings:
    (tmp_path / "mesh").mkdir()
    flags: dict[str, object] = {"mesh": tmp_path / "mesh", "state": tmp_path / "state"}
    return load(flags | dict.fromkeys(("ads_address", "http_address", "debug_address"), "127.0.0.1:0"))


async def test_task_that_ends_unexpectedly_ends_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise an unwatched mesh directory would go unnoticed."""

    async def ends(self: DirectorySource, changed: Callable[[], None]) -> None:
        del self, changed

    monkeypatch.setattr(DirectorySource, "run", ends)
    with pytest.raises(TaskEnded, match="the task 'directory source' ended, and should not have"):
        await run(_settings(tmp_path), asyncio.Event())
    assert not (tmp_path / "state" / "meshwright.sock").exists()


async def test_unreadable_mesh_at_the_start_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of the source is raised without the group of tasks around it."""

    def fails(self: DirectorySource) -> None:
        del self
        raise DirectoryError("the directory cannot be listed")

    monkeypatch.setattr(DirectorySource, "load", fails)
    with pytest.raises(StartupError, match=r"^the directory cannot be listed$"):
        await run(_settings(tmp_path), asyncio.Event())


async def test_stop_before_the_server_serves_ends_it(tmp_path: Path) -> None:
    """A signal during the start is not lost."""
    stop = asyncio.Event()
    stop.set()
    await run(_settings(tmp_path), stop)
