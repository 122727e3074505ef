"""Layers of container images as tar archives: files of this machine by their path in the image."""

import hashlib
import io
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"


@dataclass(frozen=True, slots=True)
class Link:
    """Entry of an image: a symbolic link with a literal target."""

    target: str


@dataclass(frozen=True, slots=True)
class Text:
    """Entry of an image: a file with given contents."""

    content: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Folder:
    """Entry of an image: a folder with mode and owner; other folders belong to root with mode 0755."""

    mode: int
    owner: int = 0


Entry = Path | Link | Text | Folder
"""Entry of an image: the path of a file on this machine, or a given link, text or folder."""
Files = Mapping[str, Entry]
"""Entries of an image by absolute path, for example `/usr/local/bin/envoy`."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A written layer of an image: archive, size in bytes, and SHA-256 digest."""

    path: Path
    size: int
    digest: str

    @property
    def descriptor(self) -> Mapping[str, object]:
        """Return the descriptor of the layer for an image manifest."""
        return {"mediaType": _LAYER, "digest": f"sha256:{self.digest}", "size": self.size}

    def add(self, made: tarfile.TarFile, name: str) -> None:
        """Add the layer to the archive of an image, unless the layer's own archive is removed."""
        if self.path.exists():
            about = tarfile.TarInfo(name)
            about.size = self.size
            with self.path.open("rb") as file:
                made.addfile(about, file)


@dataclass(frozen=True, slots=True)
class Layers:
    """Written layers in a folder; the same `Files` object is written once."""

    folder: Path
    _written: dict[int, tuple[Files, Layer]] = field(default_factory=dict)

    def layer(self, files: Files) -> Layer:
        """Return the layer with these files; write the layer if necessary."""
        if id(files) not in self._written:
            path = self.folder / f"layer-{len(self._written)}.tar"
            _write_layer(path, files)
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            layer = Layer(path, path.stat().st_size, digest)
            self._written[id(files)] = (files, layer)  # keeps the object alive, so that its id stays unique
        return self._written[id(files)][1]

    def imported(self) -> None:
        """Remove the archives, because the container runtime has imported the layers."""
        for _, layer in self._written.values():
            layer.path.unlink(missing_ok=True)


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
            add(made, name, content.encode(), executable=executable)
        case Path():
            with entry.open("rb") as file:
                stat = os.fstat(file.fileno())
                about.size, about.mode = stat.st_size, 0o755 if stat.st_mode & 0o100 else 0o644
                made.addfile(about, file)


def add(made: tarfile.TarFile, name: str, content: bytes, *, executable: bool = False) -> None:
    """Add a file that belongs to root to the archive of a layer."""
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), 0o755 if executable else 0o644
    made.addfile(about, io.BytesIO(content))
