"""The files of a directory: which there are, which have changed, and what they hold.

Only this module and `beneath` touch the file system for manifests. Directories are walked in order. Symlinks
to files of the same directory are followed; a symlink that leads out of it is a problem of that file.
Symlinks to folders are not followed: each is a problem, and its folder is not taken for empty.
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
"""Files of a tool that stand among manifests, and may well lack apiVersion and kind."""

_REGULAR: Final = "must be a regular file"
_LEADS_OUT: Final = (
    "must not be a symlink to a place outside the directory of manifests; move the file into that directory"
)

SINGLY: Final = 256
"""How many files are looked at one by one; where events name more, some may have been lost."""


class DirectoryError(SourceError):
    """The directory itself cannot be read; the message is one sentence for people."""


Stamp = NewType("Stamp", bytes)
"""By what a changed file is recognised without reading it: device, inode, size, and when it changed."""

_STAMP: Final = Struct("<QQQqq")
"""Packed, the five take a third of what as many numbers do; there are two stamps of each file."""

UNKNOWN: Final = Stamp(b"")
"""The stamp of a file that has none to be had: it may be another one whenever it is looked at."""


class UnlistedFolder(NamedTuple):
    """A folder of which it is not known what it holds: it cannot be listed, or a symlink stands for it."""

    folder: str
    is_link: bool = False

    @property
    def expected(self) -> str:
        """What would be right."""
        if self.is_link:
            return (
                "must be a folder, because symlinks to folders are not followed; link the "
                "files one by one, or move them here"
            )
        return "must be a folder that the server may list; check its permissions"

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return Severity.WARNING if self.is_link else Severity.ERROR


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """The manifest files of a directory by relative name, and folders that were not listed.

    `root` is the directory's own device and inode: it changes when the directory is replaced. `shared`:
    some file has other names (symlinks, hard links), so that an event may not name it.
    """

    root: tuple[int, int]
    files: Picture[str, Stamp] = field(default_factory=Picture)
    unlisted: tuple[UnlistedFolder, ...] = ()
    shared: bool = False

    @property
    def is_whole(self) -> bool:
        """Say whether all that could be listed was."""
        return all(each.is_link for each in self.unlisted)


def is_manifest(name: str) -> bool:
    """Say whether a file's name is a manifest's: an extension we read, not hidden, no editor's or tool's."""
    return name.endswith(EXTENSIONS) and not name.startswith((".", "#", "~")) and name not in NO_MANIFESTS


def list_directory(path: Path) -> DirectoryListing:
    """List a directory recursively; raise DirectoryError if it cannot be listed itself."""
    root, unlisted = root_of(path), list[UnlistedFolder]()
    found = {name: (stamp, several) for name, stamp, several in walk(path, unlisted)}
    files = {name: stamp for name, (stamp, _) in found.items()}
    shared = any(several for _, several in found.values())
    return DirectoryListing(root, Picture(files), tuple(sorted(unlisted)), shared)


def root_of(path: Path) -> tuple[int, int]:
    """Return a directory's own device and inode; raise DirectoryError if it cannot be listed."""
    try:
        root = path.stat()
        with os.scandir(path):
            pass
    except OSError as error:
        raise DirectoryError(f"directory {path} cannot be read: {_reason(error)}") from error
    return (root.st_dev, root.st_ino)


def walk(path: Path, unlisted: list[UnlistedFolder]) -> Iterator[tuple[str, Stamp, bool]]:
    """Yield manifest files with their stamps, and whether they have other names, folder by folder.

    Folders that are not listed go into `unlisted`; what goes meanwhile is not there.
    """
    waiting = [""]  # not by recursion: folders may lie deeper than that goes
    while waiting:
        beneath = waiting.pop()
        try:
            with os.scandir(f"{path}/{beneath}") as entries:
                found = sorted(entries, key=lambda each: each.name)
        except FileNotFoundError:
            continue
        except OSError:
            unlisted.append(UnlistedFolder(beneath.removesuffix("/") or "."))
            continue
        folders = []
        for entry in found:
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
    """Say whether it is a folder, or leads to one."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def relisted(path: Path, before: DirectoryListing, names: Collection[str]) -> DirectoryListing | None:
    """Return a listing in which only these manifest files may be others; None if all must be looked at.

    `names` are what events named, or files in doubt, relative to `path`. Anything but the coming, changing
    and going of plain manifest files in plain folders is for `list_directory`.
    """
    # A file that has several names changes under all of them, and events name one.
    if before.shared or not before.is_whole or len(names) > SINGLY:
        return None
    files: dict[str, Stamp | None] = {}
    for name in names:
        *folders, last = name.split("/")
        if not is_manifest(last) or any(each.startswith(".") for each in folders):
            return None
        if is_unlisted(before, name):  # it may stand in a folder by now
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
    """Return the files that have come or changed since a listing, and the `known` ones that have gone.

    A file in a folder that is not listed now has not gone.
    """
    old = before.files if before else Picture[str, Stamp]()
    changed = {name for name, stamp in now.files.items() if stamp == UNKNOWN or old.get(name) != stamp}
    gone = {name for name in known if name not in now.files and not is_unlisted(now, name)}
    return tuple(sorted(changed | gone))


def is_unlisted(listing: DirectoryListing, name: str) -> bool:
    """Say whether a file stands in a folder that was not listed."""
    return any(name.startswith(each.folder + "/") for each in listing.unlisted)


def read_content(path: Path, name: str) -> Content:
    """Read a file of at most 4 MiB; None if it is gone. What cannot be read says why.

    A symlink is followed where it leads to a file of the directory `path`, and nowhere else.
    """
    return _content(Path(path, name), lambda: open_beneath(path, name))


def read_named(file: Path) -> Content:
    """Read a file that somebody has named, as `read_content` does; a symlink may lead anywhere."""
    return _content(file, lambda: os.open(file, FILE))


def _content(file: Path, opened: Callable[[], int]) -> Content:
    try:
        descriptor = opened()
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                return UnreadableFile(Code.UNREADABLE, _REGULAR)
            data = _read(descriptor, found.st_size)
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
        irregular = error.errno in (errno.ENXIO, errno.EISDIR)  # a socket cannot even be opened
        return UnreadableFile(
            Code.UNREADABLE, _REGULAR if irregular else f"must be a readable file: {_reason(error)}"
        )
    return content_of(data)


def _read(descriptor: int, size: int) -> bytes:
    """Read a file that was `size` bytes long a moment ago, up to one byte more than is allowed."""
    # One more byte than there should be tells of the end, at half the system's calls.
    data = os.read(descriptor, min(size, MAX_BYTES) + 1)
    while len(data) not in (size, MAX_BYTES + 1):  # it grows or shrinks meanwhile
        if not (more := os.read(descriptor, MAX_BYTES + 1 - len(data))):
            break
        data += more
    return data


def content_of(data: bytes) -> str | UnreadableFile:
    """Return what was read of a file as text; of one that is too long, one byte too many is enough."""
    if len(data) > MAX_BYTES:
        return UnreadableFile(Code.TOO_LARGE, f"must be a file of at most {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return UnreadableFile(
            Code.NOT_TEXT, f"must be UTF-8 text; the byte at position {error.start} is not valid"
        )


def _stamp_at(full: str) -> tuple[Stamp, bool]:
    """Return a path's stamp, UNKNOWN if it is not to be had, and whether it is no file of one name."""
    try:
        found = os.lstat(full)
    except OSError:
        return UNKNOWN, False
    return _stamp_of(found), stat.S_ISLNK(found.st_mode) or stat.S_ISDIR(found.st_mode) or found.st_nlink > 1


def _stamp(entry: os.DirEntry[str]) -> tuple[Stamp, bool]:
    """Return a file's stamp, UNKNOWN if it is not to be had, and whether it has other names."""
    linked = False
    try:
        linked = entry.is_symlink()
        found = entry.stat()
    except OSError:
        return UNKNOWN, linked
    return _stamp_of(found), linked or found.st_nlink > 1


def _stamp_of(found: os.stat_result) -> Stamp:
    times = found.st_mtime_ns, found.st_ctime_ns
    return Stamp(_STAMP.pack(found.st_dev, found.st_ino, found.st_size, *times))


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
