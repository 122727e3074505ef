"""Which Envoys are known to understand what they are sent: those that the tests of the protocol run."""

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
    """Say whether a version is among the minor versions that are tried, whatever its patch."""
    tried = (version.major, version.minor)
    return (OLDEST.major, OLDEST.minor) <= tried <= (NEWEST.major, NEWEST.minor)


def read_version(text: str) -> Version | None:
    """Find the version in what `envoy --version`, or `/server_info`, says of it; None where there is none."""
    found = re.search(r"[0-9a-f]{40}/(\d+)\.(\d+)\.(\d+)[-/]", text)
    return Version(*map(int, found.groups())) if found else None
