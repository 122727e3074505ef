"""Python with this project and its requirements as files of an image, without tools for development."""

import functools
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.real_parts.images.archives import libraries, program, tree
from tools.real_parts.images.bytecode import compiled
from tools.real_parts.images.layers import Entry, Files, Link, Text

HOME: Final = "/opt/meshwright"
"""Path of the virtual environment in the image, with the command `bin/meshwright`."""

_ROOT: Final = Path(__file__).parents[3]
_UNUSED: Final = (
    *("site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3"),
    *("turtledemo", "pydoc_data", "config-*", "_test*.so", "_tkinter*.so"),
)


def environment() -> Files:
    """Return the files of the running interpreter, and of a virtual environment with this project."""
    base = Path(sys.base_prefix)
    version = sysconfig.get_python_version()
    interpreter, standard = base / "bin" / f"python{version}", Path(sysconfig.get_path("stdlib"))
    site = f"{HOME}/lib/python{version}/site-packages"
    command = f"#!{HOME}/bin/python\nimport sys\nfrom meshwright.guard import main\nsys.exit(main())\n"
    return {
        **program(interpreter),
        **tree(standard, str(standard), _UNUSED),
        f"{HOME}/pyvenv.cfg": Text(f"home = {interpreter.parent}\n"),
        f"{HOME}/bin/python": Link(str(interpreter)),
        f"{HOME}/bin/meshwright": Text(command, executable=True),
        **_installed(site),
        **ours(site),
    }


@functools.cache
def compiled_environment() -> Files:
    """Return the files of `environment` and the bytecode of its modules, as a layer of several images."""
    result = environment()
    return {**result, **compiled(result)}


def ours(site: str) -> Files:
    """Return the packages of the wheel from this clone; a test compares them with the wheel."""
    fields = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))
    result: dict[str, Entry] = {}
    wheel = fields["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, target in (*((name, name) for name in wheel["packages"]), *wheel["force-include"].items()):
        # `make setup` leaves a stamp beside the generated modules, which no wheel has.
        result.update(tree(_ROOT / source, f"{site}/{target}", (".built",)))
    return result


def _installed(site: str) -> Files:
    """Return the files of all required Python distributions, and of the project's own metadata."""
    result: dict[str, Entry] = {}
    for item in _needed("meshwright", {}).values():
        for file in item.files or ():
            path = Path(str(file.locate()))
            inside = ".." not in file.parts and not file.is_absolute() and file.suffix not in (".pyc", ".pth")
            if inside and path.is_file():
                result[f"{site}/{file}"] = path
    shared = (path for path in result.values() if isinstance(path, Path) and ".so" in path.suffixes)
    return {**libraries(shared), **result}


def _needed(name: str, distributions: dict[str, Distribution]) -> dict[str, Distribution]:
    """Return a Python distribution and all its installed requirements, by name."""
    if (key := canonicalize_name(name)) not in distributions:
        distributions[key] = distribution(name)
        for required in _required(distributions[key]):
            _needed(required, distributions)
    return distributions


def _required(distribution: Distribution) -> Iterator[str]:
    for text in distribution.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name
