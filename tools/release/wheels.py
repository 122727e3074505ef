"""Sdist and wheel: built by uv and hatchling, checked by twine and check-wheel-contents."""

import os
import subprocess
import sys
import zlib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from platform import python_version
from typing import Final

from tools.release.archives import Files

BUILD_LOCK: Final = "requirements/build.txt"
_SECONDS: Final = 600
_OUTPUT: Final = 2000
"""Characters of a failed program's output in the error."""


class WheelError(Exception):
    """Error for a failed build or check; the message has the end of the program's output."""


def write_tree(files: Files, folder: Path) -> None:
    """Write a source tree into an empty folder."""
    for path, file in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)


def build_distributions(tree: Path, out: Path, time: int) -> None:
    """Build the sdist from a source tree, and the wheel from the sdist, into `out`. Raises WheelError.

    The wheel is built from the sdist, because the sdist then proves to be complete. Requirements of the build
    have the versions and hashes of `requirements/build.txt`, in a separate environment: one of them owns the
    name `xds`, and must never be installed beside Meshwright.
    """
    words = ("build", "--sdist", "--wheel", "--out-dir", str(out), "--python", sys.executable)
    locks = ("--build-constraints", str(tree / BUILD_LOCK), "--require-hashes")
    _run([_program("uv"), *words, *locks, str(tree)], tree, time)


def check_distributions(tree: Path, sdist: Path, wheel: Path) -> None:
    """Check the metadata as an index would, and the modules of the wheel. Raises WheelError."""
    _run([sys.executable, "-m", "twine", "--no-color", "check", "--strict", str(sdist), str(wheel)], tree)
    settings = ("--config", str(tree / "pyproject.toml"))
    _run([_program("check-wheel-contents"), *settings, str(wheel)], tree)


def tool_versions(lock: str) -> dict[str, str]:
    """Return the versions of the programs behind the bytes of a release; `lock` is the build's lock file."""
    pins = dict(line.split(" ")[0].split("==") for line in lock.splitlines() if "==" in line)
    own = {name: version(name) for name in ("cyclonedx-python-lib", "uv")}
    built = {name: pins[name] for name in ("grpcio-tools", "hatchling", "xds-protos")}
    return {"python": python_version(), "zlib": zlib.ZLIB_RUNTIME_VERSION, **own, **built}


def package_requirements(names: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the requirements of installed packages, without packages for other platforms."""
    result: dict[str, list[str]] = {}
    for name in names:
        try:
            result[name] = requires(name) or []
        except PackageNotFoundError:
            continue
    return result


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _run(command: list[str], folder: Path, time: int = 0) -> None:
    """Run a program in the locale and time zone of every release."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    fixed = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SOURCE_DATE_EPOCH": str(time)}
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**kept, **fixed},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise WheelError(f"{name} did not end within {_SECONDS} s") from None
    if done.returncode:
        raise WheelError(f"{name} ended with status {done.returncode}:\n{done.stdout.strip()[-_OUTPUT:]}")
