"""Tests of the rounds that find changed files without events, and read no other files."""

import asyncio
import os
import random
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from meshwright.providers.directory import files
from meshwright.providers.directory.file_form import Content
from meshwright.providers.directory.files import DirectoryError, DirectoryListing, list_directory
from meshwright.providers.directory.rounds import LEAST, MOST, SLICES, TICK, Rounds, SliceResult
from meshwright.providers.directory.source import DirectorySource
from meshwright.providers.directory.watch import DirectoryWatch
from tests.unit.providers.directory.running_source import WatchedSource, running

EVERY = timedelta(seconds=30)
START = timedelta(days=1)


def _account(name: str) -> str:
    return f"apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n"


def _made(path: Path, count: int) -> DirectoryListing:
    for number in range(count):
        file = path / f"team-{number % 3}" / f"{number}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text("1")
    return list_directory(path)


def _round(rounds: Rounds, listing: DirectoryListing, now: timedelta) -> SliceResult:
    """Return the result of a whole round."""
    names: set[str] = set()
    while True:
        slice_result = rounds.slice(listing, now)
        names |= slice_result.names
        if slice_result.is_last:
            return SliceResult(frozenset(names), slice_result.unsure, is_last=True)


@pytest.mark.parametrize(
    ("files", "slices"),
    [(0, 1), (LEAST, 1), (LEAST + 1, 2), (SLICES * LEAST, SLICES), (SLICES * MOST * 3, SLICES * 3)],
)
def test_round_is_spread_evenly_over_its_slices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: int, slices: int
) -> None:
    """The wait between slices depends on the number of files, so that each slice checks few files."""
    rounds, listing = Rounds(tmp_path, EVERY), list_directory(tmp_path)
    monkeypatch.setattr(type(listing.files), "__len__", lambda _: files)
    assert rounds.wait(listing) == EVERY / slices


def test_each_slice_checks_a_part_of_the_files(tmp_path: Path) -> None:
    """A whole round checks each file once."""
    listing, rounds = _made(tmp_path, 2 * LEAST + 1), Rounds(tmp_path, EVERY)
    first, *_, last = listing.files
    for name in (first, last):
        (tmp_path / name).write_text("other")
    slice_results = [rounds.slice(listing, START) for _ in range(3)]
    assert [slice_result.names for slice_result in slice_results] == [{first}, frozenset(), {last}]
    assert [slice_result.is_last for slice_result in slice_results] == [False, False, True]


def test_read_file_is_read_once_more_after_the_tick(tmp_path: Path) -> None:
    """A second write within one tick leaves the same time stamp; after the tick the stamp is reliable."""
    listing, rounds = _made(tmp_path, 3), Rounds(tmp_path, EVERY)
    rounds.was_read(listing.files, listing, START)
    assert _round(rounds, listing, START + TICK / 2).names == frozenset()
    rounds.was_read(["team-0/0.yaml"], listing, START + TICK / 2)
    once_more = _round(rounds, listing, START + TICK).names
    assert once_more == set(listing.files)
    rounds.was_read(once_more, listing, START + TICK)
    assert _round(rounds, listing, START + 2 * TICK).names == frozenset()
    (tmp_path / "team-0" / "0.yaml").write_text("2")
    after = list_directory(tmp_path)
    rounds.was_read(["team-0/0.yaml"], after, START + 2 * TICK)
    assert _round(rounds, after, START + 3 * TICK).names == {"team-0/0.yaml"}


def _comes(path: Path) -> None:
    (path / "new").mkdir()
    (path / "new" / "x.yaml").write_text("1")


def _goes(path: Path) -> None:
    shutil.rmtree(path / "team-1")


def _is_replaced(path: Path) -> None:
    """Replace a file by one of the same size and modification time."""
    old = path / "team-0" / "0.yaml"
    draft = path / "draft"
    draft.write_text("2")
    shutil.copystat(old, draft)
    draft.replace(old)


def _is_written_in_place(path: Path) -> None:
    """Write a file in place with the same size, and reset its modification time."""
    file = path / "team-0" / "0.yaml"
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    with file.open("r+") as opened:
        opened.write("2")
    os.utime(file, ns=times)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (_comes, {"new/x.yaml"}),
        (_goes, {"team-1/1.yaml"}),
        (_is_replaced, {"team-0/0.yaml"}),
        (_is_written_in_place, {"team-0/0.yaml"}),
    ],
)
def test_round_finds_only_changed_files(
    tmp_path: Path, change: Callable[[Path], None], names: set[str]
) -> None:
    """Changes with the same size and modification time are found too."""
    listing, rounds = _made(tmp_path, 3), Rounds(tmp_path, EVERY)
    change(tmp_path)
    assert _round(rounds, listing, START) == SliceResult(frozenset(names), is_last=True)


def test_replaced_directory_requires_a_full_listing(tmp_path: Path) -> None:
    """The old listing does not apply to the new directory; a missing directory raises DirectoryError."""
    path = tmp_path / "mesh"
    path.mkdir()
    listing, rounds = _made(path, 3), Rounds(path, EVERY)
    path.rename(tmp_path / "before")
    with pytest.raises(DirectoryError, match="no such file"):
        rounds.slice(listing, START)
    path.mkdir()
    assert rounds.slice(listing, START) == SliceResult(unsure=True, is_last=True)


class _Disk:
    """A directory of ServiceAccounts with random changes."""

    def __init__(self, path: Path, seed: int) -> None:
        self._path = path
        self._random = random.Random(seed)  # noqa: S311 - no secret

    def change(self) -> None:
        """Write, rename, remove or link a file."""
        file = self._path / self._random.choice(["", "a", "b"]) / f"{self._random.randrange(6)}.yaml"
        file.parent.mkdir(exist_ok=True)
        match self._random.randrange(6):
            case 0:
                file.unlink(missing_ok=True)
            case 1:
                shutil.rmtree(self._path / self._random.choice(["a", "b"]), ignore_errors=True)
            case 2:
                draft = self._path / "draft"
                draft.write_text(self._text())
                draft.replace(file)
            case 3 if file.exists():
                file.rename(file.with_stem(f"{self._random.randrange(6)}"))
            case 4 if not file.exists() and not file.is_symlink():
                self._link(file)
            case _:
                file.write_text(self._text())

    def _link(self, file: Path) -> None:
        """Link the file into a hidden folder that is replaced as a whole, like a mounted ConfigMap."""
        version = self._path / f"..{self._random.randrange(3)}"
        version.mkdir(exist_ok=True)
        for number in range(6):
            (version / f"{number}.yaml").write_text(self._text())
        (self._path / "..draft").symlink_to(version.name)
        (self._path / "..draft").replace(self._path / "..data")
        file.symlink_to(self._path / "..data" / file.name)

    def _text(self) -> str:
        return _account(f"s{self._random.randrange(9)}")


def _source(path: Path, reread: timedelta) -> DirectorySource:
    nothing = timedelta(0)
    return DirectorySource(path, lambda: datetime.now(UTC), settle=nothing, hold=nothing, reread=reread)


@pytest.mark.parametrize("seed", range(20))
async def test_random_changes_are_found_without_events(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    """The state finally equals that of a source that reads everything."""

    async def hears_nothing(_: DirectoryWatch) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(DirectoryWatch, "run", hears_nothing)
    disk = _Disk(tmp_path, seed)
    for _ in range(5):
        disk.change()
    source = _source(tmp_path, timedelta(milliseconds=20))
    source.load()
    async with running(WatchedSource(source)) as watched:
        for _ in range(4):
            for _ in range(3):
                disk.change()
            expected = _source(tmp_path, EVERY)
            expected.load()
            await watched.until(
                lambda expected=expected: (
                    (source.objects(), source.problems())  # type: ignore[misc]
                    == (expected.objects(), expected.problems())
                )
            )


async def test_rounds_open_only_changed_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two rounds after the start, unchanged files are no longer opened."""
    opened: list[str] = []
    read = files.read_content

    def counted(path: Path, name: str) -> Content:
        opened.append(name)
        return read(path, name)

    monkeypatch.setattr("meshwright.providers.directory.source.read_content", counted)
    monkeypatch.setattr("meshwright.providers.directory.rounds.TICK", timedelta(0))
    for number in range(5):
        (tmp_path / f"{number}.yaml").write_text(_account(f"s{number}"))
    source = _source(tmp_path, timedelta(milliseconds=20))
    source.load()
    watched = WatchedSource(source)
    async with running(watched):
        while sorted(opened) != sorted(2 * [f"{number}.yaml" for number in range(5)]):
            await _next_round(source)  # the first rounds are full listings at the start of the watch
        opened.clear()
        for _ in range(3):
            await _next_round(source)
        assert opened == []
        (tmp_path / "3.yaml").write_text(_account("other"))
        await watched.until(lambda: "other" in {key.name for key in source.objects()})
        assert set(opened) == {"3.yaml"}


async def _next_round(source: DirectorySource) -> None:
    """Wait until every file was checked once more."""
    before = source.freshness().last_full_read
    async with asyncio.timeout(60):
        while source.freshness().last_full_read == before:
            await asyncio.sleep(0)
