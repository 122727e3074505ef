"""The files of a directory: which there are, which have changed, and what they hold.

This is the only place that touches the file system for manifests. Directories are walked in order,
symlinks to files are followed, symlinks to directories are not.
"""

import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from providers.contract import SourceError
from providers.directory.file_form import Content, Unreadable
from providers.text.documents import MAX_BYTES
from specs.codes import Code

EXTENSIONS = (".yaml", ".yml", ".json")
NO_MANIFESTS = frozenset({"kustomization.yaml", "kustomization.yml"})
"""Files of a tool that stand among manifests, and may well lack apiVersion and kind."""

SINGLY: Final = 256
"""How many files are looked at one by one; where events name more, some may have been lost."""


class DirectoryError(SourceError):
    """The directory itself cannot be read; the message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """By what a changed file is recognised without reading it."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The manifest files of a directory by relative name, and folders that could not be listed.

    `root` is the directory's own device and inode: it changes when the directory is replaced. `shared`:
    some file has other names (symlinks, hard links), so that an event may not name it.
    """

    root: tuple[int, int]
    files: Mapping[str, Stamp | None] = field(default_factory=dict)
    unlisted: tuple[str, ...] = ()
    shared: bool = False


def is_manifest(name: str) -> bool:
    """Say whether a file's name is a manifest's: an extension we read, not hidden, no editor's or tool's."""
    return name.endswith(EXTENSIONS) and not name.startswith((".", "#", "~")) and name not in NO_MANIFESTS


def list_directory(path: Path) -> Listing:
    """List a directory recursively; raise DirectoryError if it cannot be listed itself."""
    try:
        root = path.stat()
        with os.scandir(path):
            pass
    except OSError as error:
        raise DirectoryError(f"directory {path} cannot be read: {_reason(error)}") from error
    unlisted: list[str] = []

    def failed(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            unlisted.append(os.path.relpath(str(error.filename), path))

    files: dict[str, Stamp | None] = {}
    shared = False
    beneath = len(str(path).rstrip("/")) + 1
    for folder, folders, names in os.walk(str(path), onerror=failed):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if is_manifest(name):
                full = f"{folder.rstrip('/')}/{name}"
                files[full[beneath:]], several = _stamp(Path(full))
                shared = shared or several
    return Listing((root.st_dev, root.st_ino), files, tuple(sorted(unlisted)), shared)


def relisted(path: Path, before: Listing, names: Collection[str]) -> Listing | None:
    """Return a listing in which only these manifest files may be others; None if all must be looked at.

    `names` are what events named, or files in doubt, relative to `path`. Anything but the coming, changing
    and going of plain manifest files in plain folders is for `list_directory`.
    """
    # A file that has several names changes under all of them, and events name one.
    if before.shared or before.unlisted or len(names) > SINGLY:
        return None
    files = dict(before.files)
    for name in names:
        *folders, last = name.split("/")
        if not is_manifest(last) or any(each.startswith(".") for each in folders):
            return None
        full = path / name
        stamp, several = _stamp(full)
        if several or full.is_dir():
            return None
        if stamp is not None:
            files[name] = stamp
        elif files.pop(name, None) is None and not full.parent.is_dir():
            return None
    return replace(before, files=files)


def changed_files(before: Listing | None, now: Listing, known: Collection[str]) -> tuple[str, ...]:
    """Return the files that have come or changed since a listing, and the `known` ones that have gone.

    A file in a folder that cannot be listed now has not gone.
    """
    old: Mapping[str, Stamp | None] = before.files if before else {}
    changed = {name for name, stamp in now.files.items() if stamp is None or old.get(name) != stamp}
    gone = {name for name in known if name not in now.files and not is_unlisted(now, name)}
    return tuple(sorted(changed | gone))


def is_unlisted(listing: Listing, name: str) -> bool:
    """Say whether a file stands in a folder that could not be listed."""
    return any(name.startswith(folder + "/") for folder in listing.unlisted)


def read_content(path: Path, name: str) -> Content:
    """Read a file of at most 4 MiB; None if it is gone. What cannot be read says why."""
    full = path / name
    try:
        # Before it is opened: opening a pipe waits until somebody writes.
        found = full.stat()
        if not stat.S_ISREG(found.st_mode):
            return Unreadable(Code.UNREADABLE, "must be a regular file")
        with full.open("rb") as file:
            data = file.read(MAX_BYTES + 1)  # however large it is, and grows meanwhile
    except FileNotFoundError:
        if full.is_symlink():
            return Unreadable(Code.UNREADABLE, "must not be a symlink to nothing")
        return None
    except OSError as error:
        return Unreadable(Code.UNREADABLE, f"must be a readable file: {_reason(error)}")
    if len(data) > MAX_BYTES:
        return Unreadable(Code.TOO_LARGE, f"must be a file of at most {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Unreadable(Code.NOT_TEXT, f"must be UTF-8 text; byte {error.start} is not")


def _stamp(path: Path) -> tuple[Stamp | None, bool]:
    """Return a file's stamp, None if it is not to be had, and whether it has other names."""
    linked = path.is_symlink()
    try:
        found = path.stat()
    except OSError:
        return None, linked
    stamp = Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return stamp, linked or found.st_nlink > 1


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
