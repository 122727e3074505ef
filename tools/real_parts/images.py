"""Container images out of files of this machine, as archives that `ctr images import` takes.

The same files make the same bytes, whenever and in whatever order they are named: their times, owners and
the umask of who wrote them do not count. Layers that images share are written and unpacked once.
"""

import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Final

from tools.real_parts.building import PartError

_LIBRARY: Final = re.compile(r"(/\S+) \(0x")
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link, as it reads."""

    target: str


@dataclass(frozen=True, slots=True)
class Text:
    """A file that is on no machine yet."""

    content: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is not as those that merely stand above a file are: root's, and 0755."""

    mode: int
    owner: int = 0


Entry = Path | Link | Text | Folder
"""What is at a path of an image: a file of this machine, or what is said here."""
Files = Mapping[str, Entry]
"""What an image is made of, by the path in it, which begins with a slash."""

ETC: Final[Files] = {
    "/etc/passwd": Text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
    "/etc/group": Text("root:x:0:\nnogroup:x:65534:\n"),
    "/etc/nsswitch.conf": Text("hosts: files dns\n"),
    "/tmp": Folder(0o1777),  # noqa: S108 - the image's
}
"""What programs look for on any machine."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that is written: its archive, and the SHA-256 digest of that."""

    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Layers:
    """Layers in a folder, each written once as long as their files are the same objects."""

    folder: Path
    _written: dict[int, tuple[Files, Layer]] = field(default_factory=dict)

    def of(self, files: Files) -> Layer:
        """Return the layer of these files."""
        if id(files) not in self._written:
            path = self.folder / f"layer-{len(self._written)}.tar"
            _write_layer(path, files)
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            self._written[id(files)] = (files, Layer(path, digest))  # the files stay, and so does their id
        return self._written[id(files)][1]


@dataclass(frozen=True, slots=True)
class Image:
    """An image: its name with a tag, its files, and how a container of it is started if that says nothing.

    `command` stands behind the entrypoint; `user` is UID:GID, and root where it is empty. `below` has the
    files of layers that other images have as well, the lowest first.
    """

    name: str
    files: Files
    entrypoint: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    user: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    below: tuple[Files, ...] = ()

    @property
    def everything(self) -> Files:
        """Return the files of all layers."""
        return {path: entry for layer in (*self.below, self.files) for path, entry in layer.items()}

    def write(self, archive: Path, layers: Layers | None = None) -> None:
        """Write the archive, in the form of `docker save`; take the layers below from `layers`, if given."""
        with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
            own = Layers(Path(folder))
            found = [*map((layers or own).of, self.below), own.of({**ETC, **self.files})]
            config = json.dumps(self._config([each.digest for each in found])).encode()
            names = [f"{each.digest}.tar" for each in found]
            manifest = [{"Config": "config.json", "RepoTags": [self.name], "Layers": names}]
            with tarfile.open(archive, "w") as made:
                _add(made, "config.json", config)
                _add(made, "manifest.json", json.dumps(manifest).encode())
                for name, layer in zip(names, found, strict=True):
                    about = tarfile.TarInfo(name)
                    about.size = layer.path.stat().st_size
                    with layer.path.open("rb") as file:
                        made.addfile(about, file)

    def _config(self, digests: Sequence[str]) -> Mapping[str, object]:
        variables = [f"{name}={value}" for name, value in sorted({"PATH": PATH, **self.environment}.items())]
        machine = platform.machine()
        started = {"Entrypoint": list(self.entrypoint) or None, "Cmd": list(self.command) or None}
        about = {"Env": variables, "User": self.user, "Labels": dict(self.labels), "WorkingDir": "/"}
        return {
            "architecture": _ARCHITECTURES.get(machine, machine),
            "os": "linux",
            "config": {**about, **started},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each}" for each in digests]},
        }


def program(path: Path, at: str = "") -> Files:
    """Return a program and what it is linked with; it is where it is here, unless said."""
    found = path.resolve()
    return {**libraries([found]), at or str(path): found}


def found_program(name: str, at: str = "") -> Files:
    """Return a program of this machine's path, or raise PartError."""
    if (path := shutil.which(name)) is None:
        raise PartError(f"there is no {name} on this machine, of which an image is to be made")
    return program(Path(path), at)


def busybox(*names: str) -> Files:
    """Return a busybox, and the programs that it is by these names."""
    return {**found_program("busybox", "/bin/busybox"), **{f"/bin/{each}": Link("busybox") for each in names}}


def iptables() -> Files:
    """Return what sets rules: iptables of both families, with its matches and targets, and ip."""
    many = "/usr/sbin/xtables-multi"
    found = {**found_program("iptables-restore", many), **found_program("ip", "/usr/sbin/ip")}
    names = (f"{name}{end}" for name in ("iptables", "ip6tables") for end in ("", "-restore", "-save"))
    (modules,) = list(Path("/usr/lib").glob("*/xtables"))
    return {**found, **{f"/usr/sbin/{each}": Link(many) for each in names}, **tree(modules, str(modules))}


def tree(folder: Path, at: str, skipped: Iterable[str] = ()) -> Files:
    """Return what is in a folder but what has such a name, and what its shared objects are linked with."""
    patterns = ("__pycache__", *skipped)
    found: dict[str, Entry] = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not _is_one(each, patterns)]
        for name in [*names, *(each for each in folders if (Path(parent) / each).is_symlink())]:
            if not _is_one(name, patterns):
                path = Path(parent) / name
                within = PurePosixPath(at) / path.relative_to(folder)
                found[str(within)] = Link(str(path.readlink())) if path.is_symlink() else path
    shared = [each for each in found.values() if isinstance(each, Path) and ".so" in each.suffixes]
    return {**libraries(shared), **found}


def libraries(linked: Iterable[Path]) -> Files:
    """Return the shared libraries of programs and shared objects, where the loader finds them here."""
    wanted = sorted(map(str, linked))
    if not wanted:
        return {}
    said = subprocess.run(
        ["ldd", *wanted], capture_output=True, text=True, check=False
    ).stdout  # static: no fault
    return {each: Path(each).resolve() for each in set(_LIBRARY.findall(said))}


def _is_one(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _write_layer(layer: Path, files: Files) -> None:
    above = {str(parent) for path in files for parent in PurePosixPath(path).parents if parent.name}
    everything: Files = {**dict.fromkeys(above, Folder(0o755)), **files}
    with tarfile.open(layer, "w") as made:
        for path, entry in sorted(everything.items()):
            _enter(made, path.lstrip("/"), entry)


def _enter(made: tarfile.TarFile, name: str, entry: Entry) -> None:
    about = tarfile.TarInfo(name)
    match entry:
        case Folder(mode, owner):
            about.type, about.mode = tarfile.DIRTYPE, mode
            about.uid = about.gid = owner
            made.addfile(about)
        case Link(target):
            about.type, about.linkname = tarfile.SYMTYPE, target
            made.addfile(about)
        case Text(content, executable):
            _add(made, name, content.encode(), executable=executable)
        case Path():
            with entry.open("rb") as file:
                stat = os.fstat(file.fileno())
                about.size, about.mode = stat.st_size, 0o755 if stat.st_mode & 0o100 else 0o644
                made.addfile(about, file)


def _add(made: tarfile.TarFile, name: str, content: bytes, *, executable: bool = False) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), 0o755 if executable else 0o644
    made.addfile(about, io.BytesIO(content))
