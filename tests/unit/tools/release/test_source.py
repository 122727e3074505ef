"""Tests of reading a commit: what is refused, and that only the commit decides."""

from pathlib import Path

import pytest

from tests.tools.commit import TIME, commit
from tools.release.archives import File
from tools.release.source import Source, SourceError, read_source


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with two files, one of them executable, and ignored files beside them."""
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / ".gitignore").write_text("ignored\n")
    (folder / "a.txt").write_text("text\n")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o700)
    return folder


def test_source_has_the_files_of_the_commit_and_its_time(clone: Path) -> None:
    """Ignored files are left out, and modes other than executable are lost."""
    made = commit(clone)
    (clone / "ignored").write_text("secret")
    files = {
        ".gitignore": File(b"ignored\n"),
        "a.txt": File(b"text\n"),
        "run": File(b"#!/bin/sh\n", executable=True),
    }
    assert read_source(clone) == Source(made, TIME, files)


def test_settings_of_the_user_do_not_change_content(clone: Path) -> None:
    """A user may have git write CRLF at the end of lines, and archives with other modes."""
    commit(clone)
    before = read_source(clone)
    with (clone / ".git/config").open("a") as config:
        config.write("[core]\n\tautocrlf = true\n\teol = crlf\n[tar]\n\tumask = 0777\n")
    assert read_source(clone) == before


@pytest.mark.parametrize(("path", "named"), [("a.txt", "a.txt"), ("new.txt", "new.txt")])
def test_uncommitted_file_is_refused_by_name(clone: Path, path: str, named: str) -> None:
    """A changed and a new file would not be in the release, although the user sees them."""
    commit(clone)
    (clone / path).write_text("changed\n")
    with pytest.raises(SourceError) as raised:
        read_source(clone)
    assert str(raised.value) == (
        f"files that differ from the last commit (1): {named}. A release is built from a commit:"
        " commit these files, or put them aside with `git stash -u`"
    )


def test_only_the_first_changed_files_are_named(clone: Path) -> None:
    """A message with hundreds of names would hide the remedy."""
    commit(clone)
    for number in range(7):
        (clone / f"{number}.txt").touch()
    with pytest.raises(
        SourceError, match=r"^files that differ .* \(7\): 0.txt, .*, 4.txt and 2 more\. A release"
    ):
        read_source(clone)


def test_folder_without_git_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unpacked sdist has no commit."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "sdist"
    folder.mkdir()
    with pytest.raises(SourceError, match=r"not a git repository.*A release is built from a clone with git"):
        read_source(folder)
