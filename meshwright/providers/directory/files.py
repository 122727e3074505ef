"""The files of a directory: names, changes and contents.

Only this module and `safe_open` access the file system for manifests. Directories are walked in sorted order.
Symlinks to files of the same directory are followed; a symlink to a place outside is a problem of the file.
Symlinks to folders are not followed: each is a problem, and its folder counts as unknown, not as empty.
"""

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple, NewType

from meshwright.mesh.problems.problem import Severity
from meshwright.mesh.values.picture import Picture
from meshwright.providers.contract import SourceError
from meshwright.providers.directory.file_form import Content, UnreadableFile
from meshwright.providers.directory.safe_open import FILE, SymlinkOutsideError, open_beneath
from meshwright.providers.text.documents import MAX_BYTES
from meshwright.specs.codes import Code

EXTENSIONS = (".yaml", ".yml", ".json")
NO_MANIFESTS = frozenset({"kustomization.yaml", "kustomization.yml"})
"""Kustomize's files, which lie among manifests and often lack apiVersion and kind."""

_REGULAR: Final = "must be a regular file"
_LEADS_OUT: Final = (
    "must not be a symlink to a place outside the directory of manifests; move the file into that directory"
)

SINGLY: Final = 256
"""Maximum number of files checked one by one; with more names, some events may have been lost."""


class DirectoryError(SourceError):
    """The directory of manifests cannot be read; the message is one sentence for people."""


Stamp = NewType("Stamp", bytes)
"""Values that show a change of a file without reading it: device, inode, size and times."""

_STAMP: Final = Struct("<QQQqq")
"""Packed form, which takes a third of the memory of five numbers; there are two stamps for each file."""

UNKNOWN: Final = Stamp(b"")
"""Stamp of a file without a readable status; counts as changed at each look."""


class UnlistedFolder(NamedTuple):
    """A folder with unknown content, because it cannot be listed or is a symlink."""

    folder: str
    is_link: bool = False

    @property
    def expected(self) -> str:
        """The rule that the folder violates, for the problem's text."""
        if self.is_link:
            return (
                "must be a folder, because symlinks to folders are not followed; link the "
                "files one by one, or move them here"
            )
        return "must be a folder that the server may list; check its permissions"

    @property
    def severity(self) -> Severity:
        """The severity of the problem about this folder."""
        return Severity.WARNING if self.is_link else Severity.ERROR


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """The manifest files of a directory by relative name, and unlisted folders.

    `root` is the device and inode of the directory itself, and changes when the directory is replaced.
    `shared` is True if some file has further names (symlinks or hard links), because an event may use another
    name than the listing.
    """

    root: tuple[int, int]
    files: Picture[str, Stamp] = field(default_factory=Picture)
    unlisted: tuple[UnlistedFolder, ...] = ()
    shared: bool = False

    @property
    def is_whole(self) -> bool:
        """Return whether all folders except symlinks were listed."""
        return all(item.is_link for item in self.unlisted)


def is_manifest(name: str) -> bool:
    """Return whether a file name has a known extension, and is not hidden, an editor's or a tool's file.

    For example, `shop.yaml` is a manifest, `.shop.yaml` and `kustomization.yaml` are not.
    """
    return name.endswith(EXTENSIONS) and not name.startswith((".", "#", "~")) and name not in NO_MANIFESTS


def list_directory(path: Path) -> DirectoryListing:
    """List a directory recursively; raises DirectoryError if the directory itself cannot be listed."""
    root, unlisted = root_of(path), list[UnlistedFolder]()
    result = {name: (stamp, several) for name, stamp, several in walk(path, unlisted)}
    files = {name: stamp for name, (stamp, _) in result.items()}
    shared = any(several for _, several in result.values())
    return DirectoryListing(root, Picture(files), tuple(sorted(unlisted)), shared)


def root_of(path: Path) -> tuple[int, int]:
    """Return the device and inode numbers of a directory; raises DirectoryError if it cannot be listed."""
    try:
        root = path.stat()
        with os.scandir(path):
            pass
    except OSError as error:
        raise DirectoryError(f"directory {path} cannot be read: {_reason(error)}") from error
    return (root.st_dev, root.st_ino)


def walk(path: Path, unlisted: list[UnlistedFolder]) -> Iterator[tuple[str, Stamp, bool]]:
    """Yield manifest files with their stamps, and whether they have further names, folder by folder.

    Unreadable folders are added to `unlisted`. A file or folder that disappears during the walk is left out.
    """
    waiting = [""]  # without recursion, because folders may be deeper than Python's recursion limit
    while waiting:
        beneath = waiting.pop()
        try:
            with os.scandir(f"{path}/{beneath}") as entries:
                dir_entries = sorted(entries, key=lambda dir_entry: dir_entry.name)
        except FileNotFoundError:
            continue
        except OSError:
            unlisted.append(UnlistedFolder(beneath.removesuffix("/") or "."))
            continue
        folders = []
        for entry in dir_entries:
            if _is_folder(entry):
                if entry.name.startswith("."):
                    continue
                if entry.is_symlink():
                    unlisted.append(UnlistedFolder(f"{beneath}{entry.name}", is_link=True))
                else:
                    folders.append(f"{beneath}{entry.name}/")
            elif is_manifest(entry.name):
                yield f"{beneath}{entry.name}", *_stamp(entry)
        waiting.extend(reversed(folders))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or a symlink to one."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def relisted(path: Path, before: DirectoryListing, names: Collection[str]) -> DirectoryListing | None:
    """Return `before` with only these manifest files looked at again, or None if all must be listed.

    `names` come from events, or are files in doubt, relative to `path`. Only additions, changes and removals
    of regular manifest files in regular folders are handled here; anything else needs `list_directory`.
    """
    # A file with several names changes under all of them, but an event has only one name.
    if before.shared or not before.is_whole or len(names) > SINGLY:
        return None
    files: dict[str, Stamp | None] = {}
    for name in names:
        *folders, last = name.split("/")
        if not is_manifest(last) or any(folder.startswith(".") for folder in folders):
            return None
        if is_unlisted(before, name):  # the folder may be readable now
            return None
        stamp, several = _stamp_at(f"{path}/{name}")
        if several:
            return None
        is_there = stamp is not UNKNOWN
        if not is_there and name not in before.files and not (path / name).parent.is_dir():
            return None
        files[name] = stamp if is_there else None
    return replace(before, files=before.files.changed(files))


def changed_files(
    before: DirectoryListing | None, now: DirectoryListing, known: Collection[str]
) -> tuple[str, ...]:
    """Return the new and changed files since a listing, and the removed ones among `known`.

    A file in an unlisted folder does not count as removed.
    """
    old = before.files if before else Picture[str, Stamp]()
    changed = {name for name, stamp in now.files.items() if stamp == UNKNOWN or old.get(name) != stamp}
    gone = {name for name in known if name not in now.files and not is_unlisted(now, name)}
    return tuple(sorted(changed | gone))


def is_unlisted(listing: DirectoryListing, name: str) -> bool:
    """Return whether a file is in a folder with unknown content, for example an unreadable folder."""
    return any(name.startswith(item.folder + "/") for item in listing.unlisted)


def read_content(path: Path, name: str) -> Content:
    """Read a file of at most 4 MiB; None if it is removed, or the reason why it cannot be read.

    A symlink is followed only to a file within the directory `path`.
    """
    return _content(Path(path, name), lambda: open_beneath(path, name))


def read_named(file: Path) -> Content:
    """Read a file named by the user, as `read_content` does; a symlink may lead anywhere."""
    return _content(file, lambda: os.open(file, FILE))


def _content(file: Path, opened: Callable[[], int]) -> Content:
    try:
        descriptor = opened()
        try:
            result = os.fstat(descriptor)
            if not stat.S_ISREG(result.st_mode):
                return UnreadableFile(Code.UNREADABLE, _REGULAR)
            data = _read(descriptor, result.st_size)
        finally:
            os.close(descriptor)
    except SymlinkOutsideError:
        return UnreadableFile(Code.UNREADABLE, _LEADS_OUT)
    except FileNotFoundError:
        return (
            UnreadableFile(Code.UNREADABLE, "must not be a symlink to a missing file")
            if file.is_symlink()
            else None
        )
    except OSError as error:
        irregular = error.errno in (errno.ENXIO, errno.EISDIR)  # a socket cannot be opened (ENXIO)
        return UnreadableFile(
            Code.UNREADABLE, _REGULAR if irregular else f"must be a readable file: {_reason(error)}"
        )
    return content_of(data)


def _read(descriptor: int, size: int) -> bytes:
    """Read an open file of `size` bytes, up to one byte more than the allowed maximum."""
    # One byte more than expected detects the end of the file without a second call to read.
    data = os.read(descriptor, min(size, MAX_BYTES) + 1)
    while len(data) not in (size, MAX_BYTES + 1):  # the file changes during the read
        if not (more := os.read(descriptor, MAX_BYTES + 1 - len(data))):
            break
        data += more
    return data


def content_of(data: bytes) -> str | UnreadableFile:
    """Return a file's bytes as text; for a file that is too long, the first byte too many is enough."""
    if len(data) > MAX_BYTES:
        return UnreadableFile(Code.TOO_LARGE, f"must be a file of at most {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return UnreadableFile(
            Code.NOT_TEXT, f"must be UTF-8 text; the byte at position {error.start} is not valid"
        )


def _stamp_at(full: str) -> tuple[Stamp, bool]:
    """Return a path's stamp or UNKNOWN, and whether it is a symlink, a folder or has several names."""
    try:
        result = os.lstat(full)
    except OSError:
        return UNKNOWN, False
    return _stamp_of(result), stat.S_ISLNK(result.st_mode) or stat.S_ISDIR(
        result.st_mode
    ) or result.st_nlink > 1


def _stamp(entry: os.DirEntry[str]) -> tuple[Stamp, bool]:
    """Return the stamp of a directory entry or UNKNOWN, and whether it is a symlink or has further names."""
    linked = False
    try:
        linked = entry.is_symlink()
        result = entry.stat()
    except OSError:
        return UNKNOWN, linked
    return _stamp_of(result), linked or result.st_nlink > 1


def _stamp_of(result: os.stat_result) -> Stamp:
    times = result.st_mtime_ns, result.st_ctime_ns
    return Stamp(_STAMP.pack(result.st_dev, result.st_ino, result.st_size, *times))


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
