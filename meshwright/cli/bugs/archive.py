"""A bug report's archive: files in one folder, in a tar.gz that only its owner can read."""

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
"""Paths that mean standard output: by it alone a file leaves a container that has no `tar` and no `cat`."""


def packed(files: Mapping[str, str], at: int) -> bytes:
    """Return the archive of files (text by name) as of a second since 1970."""
    made = io.BytesIO()
    _pack(made, files, at)
    return made.getvalue()


def write(path: Path, files: Mapping[str, str], at: int) -> None:
    """Write files (text by name) as of a second since 1970; raise CommandFailed where that cannot be.

    A file that is there already is not written over. The same files make the same bytes.
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
        with os.fdopen(descriptor, "wb") as raw:
            _pack(raw, files, at)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CommandFailed(
            f"cannot write {path}: {error.strerror or error}; give another name with --out"
        ) from error


def _pack(raw: IO[bytes], files: Mapping[str, str], at: int) -> None:
    with (
        gzip.GzipFile("", "wb", fileobj=raw, mtime=at) as packed,
        tarfile.open(fileobj=packed, mode="w") as made,
    ):
        for name in sorted(files):
            content = files[name].encode()
            info = tarfile.TarInfo(f"{FOLDER}/{name}")
            info.size, info.mtime, info.mode = len(content), at, 0o600
            made.addfile(info, io.BytesIO(content))
