"""The commit from which a release is built: tracked files and time, read by git."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.release.archives import File, Files, unpack

_MOST: Final = 5
"""Number of changed files in the error."""
_SETTINGS: Final = ("-c", "core.autocrlf=false", "-c", "core.eol=lf", "-c", "tar.umask=0022")
"""Settings of git against which content and mode of files are protected."""


class SourceError(Exception):
    """Error for a folder from which no release can be built; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class Source:
    """A commit: hash, time in seconds since 1970, and files by path."""

    commit: str
    time: int
    files: Files


def read_source(root: Path) -> Source:
    """Return the commit checked out at `root`. Raises SourceError for a tree with uncommitted changes."""
    _refuse_changes(
        _git(root, "status", "--porcelain", "--untracked-files=normal").decode("utf-8", "replace")
    )
    commit, time = _git(root, "log", "-1", "--format=%H %ct").decode().split()
    return Source(commit, int(time), committed(root))


def committed(root: Path, *paths: str) -> dict[str, File]:
    """Return the files of the commit that is checked out at `root`, or only those at and below `paths`."""
    return unpack(_git(root, "archive", "--format=tar", "HEAD", *paths))


def _refuse_changes(status: str) -> None:
    changed = [line[3:] for line in status.splitlines()]
    if changed:
        more = f" and {len(changed) - _MOST} more" if len(changed) > _MOST else ""
        raise SourceError(
            f"files that differ from the last commit ({len(changed)}): {', '.join(changed[:_MOST])}{more}."
            " A release is built from a commit: commit these files, or put them aside with `git stash -u`"
        )


def _git(root: Path, *words: str) -> bytes:
    try:
        return subprocess.run(
            ["git", "-C", str(root), *_SETTINGS, *words], check=True, capture_output=True, timeout=120
        ).stdout
    except FileNotFoundError:
        raise SourceError("git is not installed: a release is built from a commit") from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode("utf-8", "replace").strip()
        raise SourceError(
            f"git {words[0]} failed: {reason}. A release is built from a clone with git"
        ) from None
