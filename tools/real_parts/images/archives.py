"""Container images from files of this machine, as archives for `ctr images import`.

Equal files make equal bytes: the order of files, their times and owners, and the umask have no influence.
Layers shared by several images are written, imported and unpacked once.
"""

import hashlib
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
from tools.real_parts.images.layers import Entry, Files, Folder, Layers, Link, Text, add

_LIBRARY: Final = re.compile(r"(/\S+) \(0x")
_BLOBS: Final = "blobs/sha256"
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


ETC: Final[Files] = {
    "/etc/passwd": Text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
    "/etc/group": Text("root:x:0:\nnogroup:x:65534:\n"),
    "/etc/nsswitch.conf": Text("hosts: files dns\n"),
    "/tmp": Folder(0o1777),  # noqa: S108 - the image's
}
"""Files expected by programs on any machine."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image: name with tag, files, and defaults of containers.

    `command` follows the entrypoint; `user` is UID:GID, or root if empty. `below` has the files of layers
    shared with other images, the lowest first.
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
        """Return the files of all layers of the image."""
        return {path: entry for layer in (*self.below, self.files) for path, entry in layer.items()}

    def write(self, archive: Path, layers: Layers | None = None) -> None:
        """Write an archive in OCI image layout; layers of `below` are taken from `layers`, if given.

        Layers imported before are named in the archive, but not contained.
        """
        with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
            own = Layers(Path(folder))
            result = [*map((layers or own).layer, self.below), own.layer({**ETC, **self.files})]
            config = json.dumps(self._config([item.digest for item in result])).encode()
            described = [item.descriptor for item in result]
            manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": _described(_CONFIG, config)}
            answer = json.dumps({**manifest, "layers": described}).encode()
            named = {**_described(_MANIFEST, answer), "annotations": {"io.containerd.image.name": self.name}}
            with tarfile.open(archive, "w") as made:
                add(made, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
                add(made, "index.json", json.dumps({"schemaVersion": 2, "manifests": [named]}).encode())
                for content in (config, answer):
                    add(made, f"{_BLOBS}/{hashlib.sha256(content).hexdigest()}", content)
                for layer in result:
                    layer.add(made, f"{_BLOBS}/{layer.digest}")

    def _config(self, digests: Sequence[str]) -> Mapping[str, object]:
        variables = [f"{name}={value}" for name, value in sorted({"PATH": PATH, **self.environment}.items())]
        machine = platform.machine()
        started = {"Entrypoint": list(self.entrypoint) or None, "Cmd": list(self.command) or None}
        about = {"Env": variables, "User": self.user, "Labels": dict(self.labels), "WorkingDir": "/"}
        return {
            "architecture": _ARCHITECTURES.get(machine, machine),
            "os": "linux",
            "config": {**about, **started},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        }


def _described(media_type: str, content: bytes) -> Mapping[str, object]:
    """Return the OCI descriptor of content (OCI image specification, descriptor.md)."""
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return {"mediaType": media_type, "digest": digest, "size": len(content)}


def program(path: Path, at: str = "") -> Files:
    """Return a program with its shared libraries as files of an image, at the same path or at `at`."""
    result = path.resolve()
    return {**libraries([result]), at or str(path): result}


def find_program(name: str, at: str = "") -> Files:
    """Return a program from PATH with its libraries as files of an image; raise PartError if missing."""
    if (path := shutil.which(name)) is None:
        raise PartError(f"the program {name} is missing on this machine, and an image needs it")
    return program(Path(path), at)


def busybox(*names: str) -> Files:
    """Return busybox as files of an image, with links for its applets, for example `/bin/sh`."""
    return {**find_program("busybox", "/bin/busybox"), **{f"/bin/{each}": Link("busybox") for each in names}}


def iptables() -> Files:
    """Return the programs for interception rules as files of an image: iptables, with matches, and ip."""
    many = "/usr/sbin/xtables-multi"
    result = {**find_program("iptables-restore", many), **find_program("ip", "/usr/sbin/ip")}
    names = (f"{name}{end}" for name in ("iptables", "ip6tables") for end in ("", "-restore", "-save"))
    (modules,) = list(Path("/usr/lib").glob("*/xtables"))
    return {**result, **{f"/usr/sbin/{each}": Link(many) for each in names}, **tree(modules, str(modules))}


def tree(folder: Path, at: str, skipped: Iterable[str] = ()) -> Files:
    """Return the files in a folder, except names in `skipped` (for example `test`), with shared libraries."""
    patterns = ("__pycache__", *skipped)
    result: dict[str, Entry] = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [item for item in folders if not _is_one(item, patterns)]
        for name in [*names, *(item for item in folders if (Path(parent) / item).is_symlink())]:
            if not _is_one(name, patterns):
                path = Path(parent) / name
                within = PurePosixPath(at) / path.relative_to(folder)
                result[str(within)] = Link(str(path.readlink())) if path.is_symlink() else path
    shared = [item for item in result.values() if isinstance(item, Path) and ".so" in item.suffixes]
    return {**libraries(shared), **result}


def libraries(linked: Iterable[Path]) -> Files:
    """Return the shared libraries of programs and shared objects, at the paths known to the loader."""
    wanted = sorted(map(str, linked))
    if not wanted:
        return {}
    stdout = subprocess.run(
        ["ldd", *wanted], capture_output=True, text=True, check=False
    ).stdout  # fails for static programs, which need no libraries
    return {item: Path(item).resolve() for item in set(_LIBRARY.findall(stdout))}


def _is_one(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)
