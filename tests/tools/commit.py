"""The repository's files, and a commit of them, so that tests of releases see uncommitted changes."""

import os
import subprocess
from collections.abc import Iterator, Sequence
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
    result: dict[str, File] = {}
    for path in _not_ignored(root, ()):
        name = path.relative_to(root).as_posix()
        if not only or any(name == place or name.startswith(f"{place}/") for place in only):
            result[name] = File(path.read_bytes(), os.access(path, os.X_OK))
    return dict(sorted(result.items()))


def _not_ignored(folder: Path, above: Sequence[tuple[Path, GitIgnoreSpec]]) -> Iterator[Path]:
    """Yield the files in a folder and below. Each `.gitignore` applies to its own folder and below."""
    specs = above
    if (own := folder / ".gitignore").exists():
        specs = (*above, (folder, GitIgnoreSpec.from_lines(own.read_text("utf-8").splitlines())))
    for path in folder.iterdir():
        is_folder = path.is_dir() and not path.is_symlink()
        suffix = "/" if is_folder else ""
        if any(spec.match_file(f"{path.relative_to(base)}{suffix}") for base, spec in specs):
            continue
        if not is_folder:
            yield path
        elif path.name != ".git":
            yield from _not_ignored(path, specs)


def commit(folder: Path) -> str:
    """Make a repository of a folder, with one commit. The returned hash depends on nothing but the files."""
    person = {f"GIT_{role}_{field}": "tests@mesh.example" for role in _ROLES for field in ("NAME", "EMAIL")}
    date = {f"GIT_{role}_DATE": f"{TIME} +0000" for role in _ROLES}
    alone = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    environment = {"PATH": os.environ["PATH"], **alone, **person, **date}
    for words in (("init", "-q", "-b", "main"), ("add", "--all"), ("commit", "-q", "-m", "A release")):
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True)
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
