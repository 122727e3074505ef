"""Tests of reading only the files that events name, and of the cases that need a full listing."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from meshwright.providers.directory.files import SINGLY, list_directory, relisted


def _made(path: Path) -> None:
    (path / "sub").mkdir()
    for name in ("a.yaml", "b.yaml", "sub/c.yaml"):
        (path / name).write_text("1")


def _changes(path: Path) -> None:
    (path / "a.yaml").write_text("22")


def _comes(path: Path) -> None:
    (path / "sub" / "d.yaml").write_text("1")


def _goes(path: Path) -> None:
    (path / "b.yaml").unlink()


@pytest.mark.parametrize(
    ("change", "name"), [(_changes, "a.yaml"), (_comes, "sub/d.yaml"), (_goes, "b.yaml"), (_goes, "e.yaml")]
)
def test_event_for_a_plain_file_updates_only_its_entry(
    tmp_path: Path, change: Callable[[Path], None], name: str
) -> None:
    """The result equals a full listing, without changes to files that no event named."""
    _made(tmp_path)
    before = list_directory(tmp_path)
    change(tmp_path)
    result, everything = relisted(tmp_path, before, {name}), list_directory(tmp_path)
    assert result is not None
    assert result == (before if name == "e.yaml" else everything)


@pytest.mark.parametrize("name", ["", "sub", ".hidden/x.yaml", "a.txt", "/elsewhere/x.yaml", "gone/x.yaml"])
def test_event_for_other_paths_requires_a_full_listing(tmp_path: Path, name: str) -> None:
    """The directory itself, folders, hidden folders, other files and missing folders need a full listing."""
    _made(tmp_path)
    assert relisted(tmp_path, list_directory(tmp_path), {"a.yaml", name}) is None


def test_folder_named_like_a_manifest_requires_a_full_listing(tmp_path: Path) -> None:
    """Anything in the folder may have changed, so the whole directory is listed."""
    _made(tmp_path)
    before = list_directory(tmp_path)
    (tmp_path / "x.yaml").mkdir()
    assert relisted(tmp_path, before, {"x.yaml"}) is None


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_directory_with_links_requires_a_full_listing(
    tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    """An event names only one path of a linked file, although its other paths have changed too."""
    _made(tmp_path)
    link(tmp_path / "sub" / "c.yaml", tmp_path / "z.yaml")
    before = list_directory(tmp_path)
    assert before.shared
    assert relisted(tmp_path, before, {"sub/c.yaml"}) is None


def test_very_many_named_files_require_a_full_listing(tmp_path: Path) -> None:
    """More than SINGLY named files are listed together, because events may have been lost."""
    _made(tmp_path)
    assert relisted(tmp_path, list_directory(tmp_path), {f"{n}.yaml" for n in range(SINGLY + 1)}) is None
