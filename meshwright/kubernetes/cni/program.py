"""The plug-in as a program on the host: a shell script, and an interpreter without needs on the host.

The interpreter is the daemon's own, copied with only the modules and shared libraries of the relay; a trial
import of the relay lists them. Each version has a folder, named after a digest of the content. The script
names the folder and is replaced as a whole, so that every call runs exactly one version.

    /opt/cni/bin/meshwright-cni                     the script
    /opt/cni/bin/meshwright-cni.d/0123456789abcdef  interpreter, libraries and relay of one version
"""

import hashlib
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import meshwright.kubernetes.cni.relay
from meshwright.kubernetes.cni.conflist import TYPE

FOLDER: Final = f"{TYPE}.d"
"""Name of the folder, next to the script, with the versions."""
_FLAGS: Final = ("-I", "-S", "-B", "-X", "utf8")
_LIBRARY: Final = re.compile(r"(\S+) => (/\S+) \(0x")
_LOOK: Final = """
import sys
sys.path.insert(0, sys.argv[1])
import relay, json, os, struct
files = {getattr(each, "__file__", None) for each in list(sys.modules.values())}
size = struct.calcsize("L")
raw = open("/proc/self/auxv", "rb").read()
words = struct.unpack(f"{len(raw) // size}L", raw)
base = dict(zip(words[::2], words[1::2])).get(7)  # AT_BASE: where the loader is
loader = [line.split()[-1] for line in open("/proc/self/maps") if base and line.startswith(f"{base:x}-")]
about = {"files": sorted(filter(None, files)), "standard": os.path.dirname(os.__file__), "loader": loader}
print(json.dumps({**about, "version": f"python{sys.version_info[0]}.{sys.version_info[1]}"}))
"""
_SCRIPT: Final = """#!/bin/sh
# Meshwright's CNI plug-in, with its own Python interpreter; installed and updated by meshwright-cni.
at="${{0%/*}}/{folder}/{version}"
exec "$at/loader" --library-path "$at/shared" "$at/bin/python" {flags} "$at/relay.py"
"""
_STUB: Final = """#!/bin/sh
# Left by meshwright-cni, which was removed: containers that started before still call it when they end.
exit 0
"""
_TIMEOUT_SECONDS: Final = 60


class ProgramError(Exception):
    """The program cannot be installed on the host; the message is one sentence."""


class Program:
    """The plug-in's program in the host's folder of CNI plug-ins, installed again after a removal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._version = ""

    def is_there(self) -> bool:
        """Return whether the plug-in's script and folder are still as this daemon installed them."""
        try:
            text = (self.folder / TYPE).read_text("utf-8", "replace")
        except OSError:
            return False
        whole = (self.folder / FOLDER / self._version / "relay.py").exists()
        return bool(self._version) and whole and text == _script(self._version)

    def put(self) -> str:
        """Install the plug-in's program if necessary, and return the version. Raises ProgramError."""
        self._version = install(self.folder)
        return self._version


def install(folder: Path) -> str:
    """Install the program in a folder of plug-ins if necessary, and return the version.

    A new version runs once as a trial before the script names the version. Raises ProgramError.
    """
    try:
        files = _files()
        version = _digest(files)
        ours, script = folder / FOLDER, folder / TYPE
        before = script.read_text("utf-8", "replace") if script.exists() else ""
        if not _runs(ours / version):  # after a power failure, files may be incomplete
            shutil.rmtree(ours / version, ignore_errors=True)
            _place(files, ours / version)
        _replace(script, _script(version))
        for path in ours.iterdir():  # the previous version stays, because a call of it may have just begun
            if path.name != version and f"/{path.name}\n" not in before.replace('"', ""):
                shutil.rmtree(path, ignore_errors=True)
    except (OSError, subprocess.SubprocessError, py_compile.PyCompileError, ValueError) as error:
        raise ProgramError(f"the plug-in cannot be installed in {folder}: {error}") from error
    return version


def remove(folder: Path) -> None:
    """Remove the program, and leave a script that always succeeds for later calls. Raises ProgramError."""
    try:
        if (folder / TYPE).exists():
            _replace(folder / TYPE, _STUB)
        shutil.rmtree(folder / FOLDER, ignore_errors=True)
    except OSError as error:
        raise ProgramError(f"the plug-in cannot be removed from {folder}: {error}") from error


def _files() -> Mapping[str, Path]:
    """Return the files of a version: the path on this machine by the path inside the version."""
    relay = Path(meshwright.kubernetes.cni.relay.__file__)
    interpreter = Path(sys.executable).resolve()
    look = [str(interpreter), *_FLAGS, "-c", _LOOK, str(relay.parent)]
    result = json.loads(_output_of(look))
    if not result["loader"]:
        raise ProgramError(
            f"{interpreter} is linked statically: meshwright-cni needs a dynamically linked Python"
        )
    loader, standard = Path(result["loader"][0]), Path(result["standard"])
    modules = [Path(file) for file in result["files"] if Path(file).is_relative_to(standard)]
    files = {f"lib/{result['version']}/{module.relative_to(standard)}": module for module in modules}
    linked = [module for module in modules if ".so" in module.suffixes]
    files |= {
        f"shared/{name}": Path(path)
        for pure_posix_path in (interpreter, *linked)
        for name, path in _LIBRARY.findall(_output_of([str(loader), "--list", str(pure_posix_path)]))
        if "/" not in name  # the loader itself is listed with a path
    }
    return {**files, "bin/python": interpreter, "loader": loader, "relay.py": relay}


def _script(version: str) -> str:
    return _SCRIPT.format(folder=FOLDER, version=version, flags=" ".join(_FLAGS))


def _output_of(words: list[str]) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False, env={}
    )
    if done.returncode:
        raise ProgramError(f"{' '.join(words[:2])} failed: {' '.join(done.stderr.split())[-300:]}")
    return done.stdout


def _digest(files: Mapping[str, Path]) -> str:
    result = hashlib.sha256()
    for name, path in sorted(files.items()):
        result.update(f"{name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return result.hexdigest()[:16]


def _place(files: Mapping[str, Path], folder: Path) -> None:
    """Put the files of a version into `folder` after a successful trial run, completely or not at all."""
    new = folder.with_name(f"{folder.name}.new")
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()  # a new folder: rmtree keeps a link, and a link must not be written through
    for name, path in files.items():
        at = new / name
        at.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, at)
        at.chmod(0o755 if name in ("bin/python", "loader") else 0o644)
        if at.suffix == ".py" and name != "relay.py":
            # The files never change, and each copy has a new time, so that the compiled file must not depend
            # on the time.
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(at), doraise=True, invalidation_mode=mode)
    for pure_posix_path in new.rglob("*"):
        _sync(pure_posix_path)
    _try(new)
    new.rename(folder)
    _sync(folder.parent)


def _sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk (fsync)."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _runs(version: Path) -> bool:
    """Return whether the folder of a version exists and a trial run of the plug-in succeeds."""
    try:
        _try(version)
    except (OSError, subprocess.SubprocessError, ProgramError):
        return False
    return True


def _try(version: Path) -> None:
    """Call the plug-in in the folder of a version with VERSION. Raises ProgramError for a wrong answer."""
    words = [str(version / "loader"), "--library-path", str(version / "shared"), str(version / "bin/python")]
    done = subprocess.run(
        [*words, *_FLAGS, str(version / "relay.py")],
        input=b"{}",
        capture_output=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
        env={"CNI_COMMAND": "VERSION"},
    )
    if done.returncode or b"supportedVersions" not in done.stdout:
        raise ProgramError(
            f"the installed plug-in fails: {done.stderr.decode(errors='replace')[-300:].strip()}"
        )


def _replace(script: Path, text: str) -> None:
    new = script.with_name(f".{script.name}.new")
    new.unlink(missing_ok=True)  # remains of a daemon that was killed
    with new.open("x", encoding="utf-8") as file:  # "x" follows no link and empties no file
        file.write(text)
        os.fchmod(file.fileno(), 0o755)
    _sync(new)
    new.replace(script)
    _sync(script.parent)
