"""The repository's files as a commit of their own, so that tests of releases see uncommitted changes."""

import os
import subprocess
from pathlib import Path
from typing import Final

from tools.release.archives import File

TIME: Final = 1_700_000_000
"""Time of the commit in seconds since 1970."""
_ROLES: Final = ("AUTHOR", "COMMITTER")


def tracked_files(root: Path, *paths: str) -> dict[str, File]:
    """Return the files that git tracks or would add, with their content in the working tree.

    `paths` are files and folders; without them all files are returned.
    """
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard", *paths],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = ((name, root / name) for name in sorted(set(listed.split("\0"))) if name)
    return {name: File(path.read_bytes(), os.access(path, os.X_OK)) for name, path in found if path.is_file()}


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
