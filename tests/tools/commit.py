"""The repository's files, and a commit of them, so that tests of releases see uncommitted changes."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pathspec import GitIgnoreSpec

from tools.release.archives import File

TIME: Final = 1_700_000_000
"""Time of the commit in seconds since 1970."""
_ROLES: Final = ("AUTHOR", "COMMITTER")


def source_files(root: Path, *only: str) -> dict[str, File]:
    """Return the files of the working tree that git does not ignore, by path and sorted.

    `only` are the wanted files and folders; without them all files are returned. Git itself is not needed,
    because continuous integration may have the files without the repository.
    """
    ignored = GitIgnoreSpec.from_lines((root / ".gitignore").read_text("utf-8").splitlines())
    result: dict[str, File] = {}
    for parent, folders, names in os.walk(root):
        at = Path(parent).relative_to(root)
        folders[:] = [each for each in folders if each != ".git" and not ignored.match_file(f"{at / each}/")]
        paths = ((at / name).as_posix() for name in names)
        for path in paths:
            if _is_within(path, only) and not ignored.match_file(path):
                result[path] = File((root / path).read_bytes(), os.access(root / path, os.X_OK))
    return dict(sorted(result.items()))


def _is_within(path: str, only: Sequence[str]) -> bool:
    return not only or any(path == each or path.startswith(f"{each}/") for each in only)


def commit(folder: Path) -> str:
    """Make a repository of a folder, with one commit. The returned hash depends on nothing but the files."""
    person = {f"GIT_{role}_{field}": "tests@mesh.example" for role in _ROLES for field in ("NAME", "EMAIL")}
    date = {f"GIT_{role}_DATE": f"{TIME} +0000" for role in _ROLES}
    alone = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    environment = {"PATH": os.environ["PATH"], **alone, **person, **date}
    for words in (("init", "-q", "-b", "main"), ("add", "--all"), ("commit", "-q", "-m", "A release")):
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True)
    said = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
    )
    return said.stdout.strip()
