"""Entry point of the command: refuse to start if another project's package shadows one of ours.

`catalog`, `certs`, `protos` and `xds` are top-level packages beside this one, and other projects have
packages with these names too. This module finds and names such a package, with the standard library alone,
before anything of ours is imported. Then it calls `meshwright.cli`.
"""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

PACKAGES: Final = ("catalog", "certs", "protos", "xds")
"""Top-level packages beside this one."""
ROOT: Final = Path(__file__).resolve().parents[1]
_STATUS: Final = 2
"""Exit status of a failed start: `meshwright.cli.errors.Status.UNKNOWN`, which cannot be imported here."""


def main() -> None:
    """Run the command line, unless one of our packages is shadowed."""
    if shadows := tuple(shadowed()):
        # A folder's name may contain control characters for the terminal.
        sys.stderr.write(
            "".join(f"meshwright: {item if item.isprintable() else ascii(item)}\n" for item in shadows)
        )
        sys.exit(_STATUS)
    importlib.import_module("meshwright.cli.main").main()


def shadowed() -> Iterator[str]:
    """Yield a sentence for each package of ours for which Python finds another module."""
    for name in PACKAGES:
        place = _import_place(name)
        if place is not None and place != ROOT / name:
            yield (
                f"its package {name!r} is shadowed by {place}{_owner(place)}, which {_reason(place)}, before "
                f"{ROOT / name}: take that away, or install meshwright as an application of its own"
            )


def _import_place(name: str) -> Path | None:
    """Return the folder or file from which a package is or would be imported; None if missing."""
    module = sys.modules.get(name)
    spec = importlib.util.find_spec(name) if module is None else getattr(module, "__spec__", None)
    if spec is None:
        file = getattr(module, "__file__", None)
        return None if file is None else Path(file).resolve()
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin or name).resolve()


def _reason(place: Path) -> str:
    """Return why Python finds this module first."""
    entry = str(place.parent)
    entries = [str(Path(item).resolve()) for item in sys.path]
    if entry not in entries:
        return "is imported already"
    if entry == str(Path.cwd()):
        return f"stands in the working directory, entry {entries.index(entry)} of sys.path"
    return f"is entry {entries.index(entry)} of sys.path (PYTHONPATH, or a .pth file)"


def _owner(place: Path) -> str:
    """Return a clause with the installed Python package that owns a file, for messages; "" if unknown."""
    for distribution in metadata.distributions(path=[str(place.parent)]):
        for file in distribution.files or ():
            if Path(str(distribution.locate_file(file.parts[0]))).resolve() == place:
                return f" (of the distribution {distribution.name} {distribution.version})"
    return ""
