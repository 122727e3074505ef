"""Supported versions of Envoy: the versions in the protocol tests."""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version of Envoy."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


OLDEST: Final = Version(1, 36, 4)
NEWEST: Final = Version(1, 40, 0)


def is_tried(version: Version) -> bool:
    """Return whether a version's minor release is supported, with any patch number."""
    tried = (version.major, version.minor)
    return (OLDEST.major, OLDEST.minor) <= tried <= (NEWEST.major, NEWEST.minor)


def read_version(text: str) -> Version | None:
    """Return the version in the output of `envoy --version` or of `/server_info`, or None.

    The version is between the commit and the build, for example `1.40.0` in `<commit>/1.40.0/Clean/RELEASE`.
    """
    match = re.search(r"[0-9a-f]{40}/(\d+)\.(\d+)\.(\d+)[-/]", text)
    return Version(*map(int, match.groups())) if match else None
