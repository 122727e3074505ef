"""Places with the project's version, and the places in disagreement with `pyproject.toml`.

The version is decided in `pyproject.toml`. The program reads the version from the installed metadata, so code
never states a version. The chart, examples of commands and the changelog do, because people read these files
without a build.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from tools.release.archives import Files

PROJECT: Final = "pyproject.toml"
CHART: Final = "deploy/chart/meshwright/Chart.yaml"
CHANGELOG: Final = "CHANGELOG.md"
_IN_TEXT: Final = re.compile(
    r"meshwright(?:/(?:control-plane|proxy):|(?:-control-plane|-proxy)?-)(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)"
)
"""An image's name with a tag, for example `meshwright/proxy:0.2.0`, or the name of a release's file."""
_READ: Final = (".md", ".py", ".yaml", ".yml", ".json", ".txt", ".tpl", "Dockerfile", "Makefile")
_OF_THEIR_OWN: Final = ("tests/", CHANGELOG)
"""Tests use versions as examples, and the changelog has all versions."""


class VersionsDisagree(Exception):
    """Error for another version than the one in `pyproject.toml`; the message names each place."""


@dataclass(frozen=True, slots=True)
class StatedVersion:
    """A version and where it is stated, for example `docs/start/install.md:9`."""

    place: str
    version: str


def version(files: Files) -> str:
    """Return the version of the project."""
    return str(tomllib.loads(files[PROJECT].text)["project"]["version"])


def stated(files: Files) -> Iterator[StatedVersion]:
    """Yield every place outside `pyproject.toml` with the project's version."""
    chart = yaml.safe_load(files[CHART].text)
    for field in ("version", "appVersion"):
        yield StatedVersion(f"{CHART}: {field}", str(chart[field]))
    for path in sorted(files):
        if path.endswith(_READ) and not path.startswith(_OF_THEIR_OWN):
            yield from _in_text(path, files[path].text)


def _in_text(path: str, text: str) -> Iterator[StatedVersion]:
    for match in _IN_TEXT.finditer(text):
        yield StatedVersion(f"{path}:{text.count(chr(10), 0, match.start()) + 1}", match[1])


def check(files: Files) -> str:
    """Return the version, which all places state alike. Raises VersionsDisagree."""
    result = version(files)
    wrong = [f"{item.place} states {item.version}" for item in stated(files) if item.version != result]
    if f"\n## [{result}] - " not in files[CHANGELOG].text:
        wrong.append(f"{CHANGELOG} has no heading `## [{result}] - YYYY-MM-DD`")
    if wrong:
        raise VersionsDisagree(f"the version in {PROJECT} is {result}, but " + "; ".join(wrong))
    return result
