"""`python -m tools.top_level_names PROJECTS.json`: prints tests/feature/names/most_downloaded.txt.

PROJECTS.json is a list of project names, or https://hugovk.github.io/top-pypi-packages as it is. Of each
project's newest wheel only the table of contents is fetched, from the end of the file. A project without a
wheel is left out. It asks PyPI a few times a project, one after the other.
"""

import http
import io
import json
import sys
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

_INDEX: Final = "https://pypi.org/pypi/{}/json"
_ACCEPTED: Final = {"User-Agent": "meshwright top_level_names"}


def top_level(contents: Iterable[str]) -> frozenset[str]:
    """Return the names that can be imported of a wheel with these files; metadata and scripts are none."""
    found = set[str]()
    for path in contents:
        first, _, rest = path.partition("/")
        if first.endswith(".data"):
            scheme, _, rest = rest.partition("/")
            if scheme not in ("purelib", "platlib"):
                continue
            first, _, rest = rest.partition("/")
        if first.endswith(".dist-info"):
            continue
        name = first if rest else _module(first)
        if name and name.isidentifier():
            found.add(name)
    return frozenset(found)


def _module(file: str) -> str:
    """Return the module that a file is, such as `x` of x.py and of x.cpython-311-x86_64-linux-gnu.so."""
    stem, _, ending = file.rpartition(".")
    return stem.partition(".")[0] if ending in ("py", "so", "pyd") else ""


class Remote(io.RawIOBase):
    """A file of a server that gives parts of it."""

    def __init__(self, url: str, size: int) -> None:
        self._url, self._size, self._at = url, size, 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be read from anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """Say where."""
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a writable buffer
        """Read on."""
        last = min(self._at + len(buffer), self._size) - 1
        if last < self._at:
            return 0
        headers = {**_ACCEPTED, "Range": f"bytes={self._at}-{last}"}
        request = urllib.request.Request(self._url, headers=headers)  # noqa: S310 - https
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - https
            if answer.status != http.HTTPStatus.PARTIAL_CONTENT:
                raise OSError(f"{self._url} is not given in parts")
            data = answer.read()
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def of_project(name: str) -> frozenset[str]:
    """Return the names that the newest wheel of a project brings; none if it has no wheel."""
    request = urllib.request.Request(_INDEX.format(name), headers=_ACCEPTED)  # noqa: S310 - https
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - https
        files = json.load(answer)["urls"]
    wheels = sorted((each["filename"], each["url"], each["size"]) for each in files)
    for file, url, size in wheels:
        if file.endswith(".whl"):
            with zipfile.ZipFile(io.BufferedReader(Remote(url, size), 64 * 1024)) as archive:
                return top_level(archive.namelist())
    return frozenset()


def lines(projects: int, names: Iterable[str], day: str) -> Iterator[str]:
    """Yield the file: where it is from, and the names, sorted."""
    yield f"# Top-level modules of the wheels of the {projects} most downloaded projects of PyPI, {day}."
    yield "# Made by tools/top_level_names.py."
    yield from sorted(set(names))


def main() -> None:
    """Ask for each project, and print the names."""
    told = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    projects = [each["project"] for each in told["rows"]] if isinstance(told, dict) else told
    found: set[str] = set()
    for each in projects:
        try:
            found |= of_project(each)
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            sys.stderr.write(f"{each}: left out: {error}\n")
    print("\n".join(lines(len(projects), found, datetime.now(UTC).date().isoformat())))


if __name__ == "__main__":
    main()
