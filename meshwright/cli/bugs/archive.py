"""Archive of a bug report: a tar.gz with one folder, readable by its owner only."""

import errno
import gzip
import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from meshwright.cli.errors import CommandFailed

FOLDER: Final = "meshwright-bug-report"
STANDARD_OUTPUT: Final = frozenset(map(Path, ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")))
"""Paths of standard output, the only way for a file out of a container without `tar` and `cat`."""


def packed(files: Mapping[str, str], at: int) -> bytes:
    """Return the archive of `files` (text by name); `at` is their modification time in seconds since 1970."""
    made = io.BytesIO()
    _pack(made, files, at)
    return made.getvalue()


def write(path: Path, files: Mapping[str, str], at: int) -> None:
    """Write the archive of `files` (text by name) to a new file; raise CommandFailed on failure.

    `at` is their modification time in seconds since 1970. The same files make the same bytes. An existing
    file is never overwritten.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise CommandFailed(f"{path} exists already: give another name with --out") from error
    except OSError as error:
        do = "write to standard output with --out -" if error.errno == errno.EROFS else ""
        raise CommandFailed(
            "; ".join(filter(None, (f"cannot write {path}: {error.strerror}", do)))
        ) from error
    try:
        # A partial archive is deleted: it could not be unpacked, and the name must be free for the next try.
        with os.fdopen(descriptor, "wb") as raw:
            _pack(raw, files, at)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CommandFailed(
            f"cannot write {path}: {error.strerror or error}; give another name with --out"
        ) from error


def _pack(raw: IO[bytes], files: Mapping[str, str], at: int) -> None:
    with (
        # Without a name and with a fixed time in its header, so that the same files make the same bytes.
        gzip.GzipFile("", "wb", fileobj=raw, mtime=at) as packed,
        tarfile.open(fileobj=packed, mode="w") as made,
    ):
        for name in sorted(files):
            content = files[name].encode()
            info = tarfile.TarInfo(f"{FOLDER}/{name}")
            info.size, info.mtime, info.mode = len(content), at, 0o600
            made.addfile(info, io.BytesIO(content))
