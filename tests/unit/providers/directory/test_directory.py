"""Tests of the directory source with real files."""

import asyncio
import os
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from meshwright.mesh.kinds import WORKLOAD
from meshwright.mesh.origins import InFile, Origin
from meshwright.providers.contract import Source
from meshwright.providers.directory.files import DirectoryError
from meshwright.providers.directory.source import DirectorySource
from tests.meshes.texts import account, account_key, workload, workload_key
from tests.unit.providers.directory.running_source import DEADLINE, WatchedSource, running


def _clock() -> datetime:
    return datetime.now(UTC)


class Watched(WatchedSource[DirectorySource]):
    """A running source, and the names in force after each change."""

    def __init__(self, source: DirectorySource) -> None:
        super().__init__(source)
        self.published: list[list[str]] = []

    def changed(self) -> None:
        """Record a change, and the names in force."""
        self.published.append([key.name for key in self.source.objects()])
        super().changed()

    async def until_read_after(self, moment: datetime) -> None:
        """Wait until all files were read again, which reports no change."""
        async with asyncio.timeout(DEADLINE):
            while (self.source.freshness().last_full_read or moment) <= moment:
                await asyncio.sleep(0.005)

    async def until_present(self, name: str) -> None:
        """Wait until this ServiceAccount is in force."""
        await self.until(lambda: account_key(name) in self.source.objects())

    async def until_names(self, *names: str) -> None:
        """Wait until exactly these objects are in force."""
        await self.until(lambda: [key.name for key in self.source.objects()] == list(names))


def _running(source: DirectorySource) -> AbstractAsyncContextManager[Watched]:
    source.load()
    return running(Watched(source))


def _source(path: Path, settle: int = 300, *, polling: bool = False) -> DirectorySource:
    settled, hold = timedelta(milliseconds=settle), timedelta(0)  # test_directory_guard.py tests the hold
    retry = timedelta(milliseconds=50)
    return DirectorySource(path, _clock, settle=settled, hold=hold, retry=retry, polling=polling)


def test_load_reads_manifests_and_ignores_other_files(tmp_path: Path) -> None:
    """Folders and symlinks to files inside are followed; hidden files and editors' copies are ignored."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yml").write_text(account("a"))
    (tmp_path / "beside.txt").write_text(account("b"))
    (tmp_path / "b.yaml").symlink_to("beside.txt")
    for name in (".hidden.yaml", "c.yaml~", "#c.yaml", ".c.yaml.swp", "c.txt", "4913"):
        (tmp_path / name).write_text(account("no"))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.yaml").write_text(account("no"))
    source = _source(tmp_path)
    source.load()
    assert {key.name: _file(sourced_object.origin) for key, sourced_object in source.objects().items()} == {
        "a": "sub/a.yml",
        "b": "b.yaml",
    }
    assert source.problems() == ()
    provider: Source = source
    assert provider.name == "directory"
    assert provider.freshness().last_full_read is not None


def test_missing_directory_or_file_in_its_place_is_a_clear_error(tmp_path: Path) -> None:
    """The error names the directory and the cause."""
    with pytest.raises(DirectoryError, match=r"directory .*/none cannot be read: no such file or directory"):
        _source(tmp_path / "none").load()
    (tmp_path / "file").touch()
    with pytest.raises(DirectoryError, match="not a directory"):
        _source(tmp_path / "file").load()


def test_each_unreadable_file_is_a_problem_and_the_rest_is_read(tmp_path: Path) -> None:
    """A file that is too large, binary, a FIFO or a dangling symlink is a problem with the file's path."""
    (tmp_path / "good.yaml").write_text(account("a"))
    (tmp_path / "large.yaml").write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    (tmp_path / "binary.yaml").write_bytes(b"a: \xff")
    (tmp_path / "nowhere.yaml").symlink_to(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe.yaml")
    source = _source(tmp_path)
    with capture_logs() as logs:
        source.load()
    assert [(_file(problem.origin), problem.code) for problem in source.problems()] == [
        ("binary.yaml", "MW1105"),
        ("large.yaml", "MW1103"),
        ("nowhere.yaml", "MW1104"),
        ("pipe.yaml", "MW1104"),
    ]
    assert len(logs) == 4
    assert list(source.objects()) == [account_key("a")]


@pytest.mark.parametrize("polling", [False, True])
async def test_added_changed_and_deleted_files_take_effect(tmp_path: Path, polling: bool) -> None:
    """Files in new folders take effect too, with events and with polling."""
    file = tmp_path / "x.yaml"
    file.write_text(account("a"))
    async with _running(_source(tmp_path, 50, polling=polling)) as watched:
        (tmp_path / "y.yaml").write_text(workload("w", "10.0.0.1"))
        await watched.until_names("a", "w")
        file.write_text(account("b"))
        await watched.until_names("b", "w")
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "z.yaml").write_text(account("c"))
        await watched.until_names("b", "c", "w")
        (tmp_path / "y.yaml").unlink()
        await watched.until_names("b", "c")
        assert not [key for key in watched.source.objects() if key.kind == WORKLOAD]
        assert watched.source.freshness().last_event is not None


def _file(origin: Origin) -> str:
    assert isinstance(origin, InFile)
    return origin.path


async def test_bad_edit_keeps_the_last_good_form_and_is_logged_once(tmp_path: Path) -> None:
    """The object is stale until the file is corrected, and reading the same file again logs nothing."""
    file = tmp_path / "x.yaml"
    file.write_text(workload("w", "10.0.0.1"))
    source = DirectorySource(
        tmp_path, _clock, settle=timedelta(milliseconds=200), reread=timedelta(milliseconds=50)
    )
    with capture_logs() as logs:
        async with _running(source) as watched:
            file.write_text(workload("w", "nowhere"))
            await watched.until(lambda: source.objects()[workload_key("w")].stale)
            first = source.freshness().last_full_read
            assert first is not None
            await watched.until_read_after(first)
            file.with_name("y.yaml").write_text(account("a"))
            await watched.until_names("a", "w")
            file.write_text(workload("w", "10.0.0.2"))
            await watched.until(lambda: source.problems() == ())
            assert not source.objects()[workload_key("w")].stale
    assert [log["event"] for log in logs] == ["manifest problem"] * 2 + ["problem resolved"] * 2
    assert [log["code"] for log in logs] == ["MW1013", "MW1107"] * 2
    assert "spec.address" in logs[0]["problem"]
    assert [log["problem"] for log in logs[2:]] == [log["problem"] for log in logs[:2]]


def _rewrite_like_an_editor(file: Path, text: str) -> None:
    """Delete the file, create it empty, write half of it, then the rest; each state can be seen."""
    file.unlink()
    file.touch()
    with file.open("w") as handle:
        handle.write(text[:30])
        handle.flush()
        handle.write(text[30:])


async def test_object_stays_in_force_while_an_editor_replaces_its_file(tmp_path: Path) -> None:
    """The settle time bridges the gap, so the object is in every published state."""
    file = tmp_path / "x.yaml"
    file.write_text(account("a"))
    async with _running(_source(tmp_path, 60_000)) as watched:
        for count in range(20):
            _rewrite_like_an_editor(file, account("a"))
            backup = file.rename(tmp_path / "x.yaml~")
            (tmp_path / f"seen{count}.yaml").write_text(account(f"seen{count}"))
            # The source has now listed the directory without the file.
            await watched.until_present(f"seen{count}")
            backup.rename(file)
        assert len(watched.published) >= 20
        assert all("a" in names for names in watched.published)


async def test_object_is_removed_and_restored_by_a_rename_without_settle_time(tmp_path: Path) -> None:
    """Negative control: without waiting, renaming a file away and back takes its object out of force."""
    file = tmp_path / "x.yaml"
    file.write_text(account("a"))
    async with _running(_source(tmp_path, 0)) as watched:
        backup = file.rename(tmp_path / "x.yaml~")
        await watched.until_names()
        backup.rename(file)
        await watched.until_names("a")
        assert [] in watched.published


async def test_missing_directory_keeps_its_objects_until_it_is_back(tmp_path: Path) -> None:
    """The error and its start are reported; once the directory is back, changes take effect again."""
    mesh = tmp_path / "mesh"
    mesh.mkdir()
    (mesh / "x.yaml").write_text(account("a"))
    async with _running(_source(mesh, 50)) as watched:
        source = watched.source
        mesh.rename(tmp_path / "away")
        await watched.until(lambda: bool(source.freshness().error))
        assert "cannot be read: no such file or directory" in source.freshness().error
        assert source.freshness().error_since is not None
        assert list(source.objects()) == [account_key("a")]
        (problem,) = source.problems()
        assert (problem.code, problem.expected) == (
            "MW1109",
            (
                f"directory {mesh} cannot be read: no such file or directory; the objects "
                "read from it before stay in force"
            ),
        )
        mesh.mkdir()
        (mesh / "x.yaml").write_text(account("b"))
        await watched.until(lambda: list(source.objects()) == [account_key("b")])
        assert (source.freshness().error, source.freshness().error_since) == ("", None)
        assert source.problems() == ()
        (mesh / "y.yaml").write_text(account("c"))
        await watched.until_names("b", "c")


@pytest.mark.parametrize("gap", [False, True], ids=["at once", "with nothing there for a moment"])
async def test_switched_release_link_keeps_the_last_good_form_of_a_misspelt_object(
    tmp_path: Path, gap: bool
) -> None:
    """The mesh directory is a symlink to a release.

    An object that is misspelt in the new release stays in force as stale, and objects that the new release
    does not have are removed.
    """
    first, second, mesh = (tmp_path / name for name in ("first", "second", "mesh"))
    for release in (first, second):
        release.mkdir()
    (first / "a.yaml").write_text(account("a") + "---\n" + workload("w", "10.0.0.1"))
    (first / "gone.yaml").write_text(account("gone"))
    (second / "a.yaml").write_text(account("b") + "---\n" + workload("w", "10.0.0.2").replace("W", "X"))
    mesh.symlink_to(first)
    source = _source(mesh)
    async with _running(source) as watched:
        if gap:
            mesh.unlink()
            await watched.until(lambda: bool(source.freshness().error))
            assert len(source.objects()) == 3
        (tmp_path / "next").symlink_to(second)
        (tmp_path / "next").replace(mesh)
        await watched.until_names("b", "w")
        assert source.objects()[workload_key("w")].stale
        assert [problem.code for problem in source.problems()] == ["MW1003", "MW1107"]


@pytest.mark.parametrize("polling", [False, True])
async def test_folder_replaced_by_a_symlink_keeps_its_objects(tmp_path: Path, polling: bool) -> None:
    """A symlink to a folder is not followed and is a problem; files beside it still take effect."""
    mesh, release = tmp_path / "mesh", tmp_path / "release"
    folder, beside = mesh / "sub", mesh / "b.yaml"
    for path in (folder, release):
        path.mkdir(parents=True)
        (path / "x.yaml").write_text(account("a"))
    beside.write_text(account("b"))
    settle, reread = timedelta(milliseconds=50), timedelta(milliseconds=50)
    source = DirectorySource(mesh, _clock, settle=settle, reread=reread, polling=polling)
    async with _running(source) as watched:
        folder.rename(tmp_path / "away")
        folder.symlink_to(release)
        await watched.until(lambda: bool(source.problems()))
        (problem,) = source.problems()
        assert problem.code == "MW1109"
        assert problem.expected.startswith(
            "must be a folder, because symlinks to folders are not followed; link the files "
            "one by one, or move them here"
        )
        (release / "x.yaml").write_text(account("other"))
        beside.write_text(account("c"))
        await watched.until_names("a", "c")
        beside.write_text(account("d"))
        await watched.until_names("a", "d")
        folder.unlink()
        folder.mkdir()
        (folder / "x.yaml").write_text(account("e"))
        await watched.until_names("d", "e")
        assert source.problems() == ()


async def test_file_that_becomes_unreadable_keeps_its_objects(tmp_path: Path) -> None:
    """This holds for a dangling symlink and for another encoding; removing the file removes its objects."""
    (tmp_path / "mesh").mkdir()
    there, file = tmp_path / "mesh" / "there.txt", tmp_path / "mesh" / "x.yaml"
    there.write_text(account("a"))
    file.symlink_to(there)
    (tmp_path / "mesh" / "b.yaml").write_text(account("b"))
    source = DirectorySource(
        tmp_path / "mesh", _clock, settle=timedelta(0), reread=timedelta(milliseconds=50)
    )
    async with _running(source) as watched:
        for spoil in (there.unlink, lambda: there.write_bytes(b"\xff\xfe")):
            spoil()
            await watched.until(lambda: bool(source.problems()))
            assert source.objects()[account_key("a")].stale
            assert source.problems()[0].expected.endswith("; the objects read from it before stay in force")
            there.write_text(account("a"))
            await watched.until(lambda: source.problems() == ())
        file.unlink()
        await watched.until_names("b")
