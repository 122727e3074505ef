"""What events name is enough, or everything is listed."""

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
def test_a_plain_file_is_looked_at_alone(tmp_path: Path, change: Callable[[Path], None], name: str) -> None:
    """What comes of it is what listing everything would have come to, but for what was not named."""
    _made(tmp_path)
    before = list_directory(tmp_path)
    change(tmp_path)
    found, everything = relisted(tmp_path, before, {name}), list_directory(tmp_path)
    assert found is not None
    assert found == (before if name == "e.yaml" else everything)


@pytest.mark.parametrize("name", ["", "sub", ".hidden/x.yaml", "a.txt", "/elsewhere/x.yaml", "gone/x.yaml"])
def test_what_is_no_plain_file_is_not(tmp_path: Path, name: str) -> None:
    """The directory itself, folders, hidden ones, other files, other places, folders that are not there."""
    _made(tmp_path)
    assert relisted(tmp_path, list_directory(tmp_path), {"a.yaml", name}) is None


def test_a_folder_with_the_name_of_a_manifest_is_none(tmp_path: Path) -> None:
    """Whatever is in it may have changed."""
    _made(tmp_path)
    before = list_directory(tmp_path)
    (tmp_path / "x.yaml").mkdir()
    assert relisted(tmp_path, before, {"x.yaml"}) is None


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_where_files_have_several_names_everything_is_listed(
    tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    """An event names one of them; the other has changed as well."""
    _made(tmp_path)
    link(tmp_path / "sub" / "c.yaml", tmp_path / "z.yaml")
    before = list_directory(tmp_path)
    assert before.shared
    assert relisted(tmp_path, before, {"sub/c.yaml"}) is None


def test_after_very_many_events_everything_is_listed(tmp_path: Path) -> None:
    """Some may have been lost."""
    _made(tmp_path)
    assert relisted(tmp_path, list_directory(tmp_path), {f"{n}.yaml" for n in range(SINGLY + 1)}) is None
