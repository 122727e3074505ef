"""A third-party package: a wheel of a few files, installed like any other."""

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

UV = Path(sys.executable).with_name("uv")


def wheel(folder: Path, name: str, files: Mapping[str, str], entry_points: str = "") -> Path:
    """Write the wheel of a distribution, version 1.0, with these files, and a file of entry points."""
    info = f"{name}-1.0.dist-info"
    metadata = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": entry_points,
    }
    contents = {**files, **metadata}
    record = "".join(f"{path},,\n" for path in (*contents, f"{info}/RECORD"))
    made = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**contents, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return made


def install(target: Path, *wheels: Path) -> Path:
    """Install wheels into a separate directory, without their dependencies; return the directory."""
    words = ("pip", "install", "--quiet", "--offline", "--no-deps", "--python", sys.executable)
    subprocess.run([UV, *words, "--target", target, *wheels], check=True, timeout=120)
    return target
