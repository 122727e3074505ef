"""Files for people and proxies, written completely or not at all, with private permissions where needed."""

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from certs.state import links
from certs.state.files import make_private
from meshwright.sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE, TRUST_DOMAIN_FILE

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_ROOM: Final = 64 * 1024
"""Bytes of room to test for: more than all files of a proxy, with any number of intermediates."""


def write(path: Path, content: bytes, mode: int) -> None:
    """Replace `path` by `content` with the permissions `mode`, in one step.

    A symbolic link at `path` is replaced rather than followed. Links of other users in the directories of
    `path` are not followed. Raises OSError.
    """
    with _staged(path, content, mode) as put:
        put()


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[IO[str]]:
    """Create a new file for the owner only (0600), and delete the file if the block raises.

    Raises OSError, also if the file exists.
    """
    descriptor = os.open(path, _NEW, 0o600)
    file = os.fdopen(descriptor, "w")
    try:
        yield file
    except BaseException:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # closing would repeat the failed write
            file.close()
        raise
    file.close()


@contextlib.contextmanager
def place_for_credentials(directory: Path) -> Iterator[None]:
    """Check that `write_credentials` will be able to write to a directory; raise OSError otherwise.

    The directory is created if missing, and deleted again if the block raises.
    """
    made = not directory.exists()
    make_private(directory)
    try:
        for name in (KEY_FILE, AUTHORITY_FILE, CHAIN_FILE, TRUST_DOMAIN_FILE):
            if (directory / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(directory / name))
        # A full disk shows only when data is written.
        with _staged(directory / KEY_FILE, bytes(_ROOM), 0o600):
            pass
        yield
    except BaseException:
        if made:
            with contextlib.suppress(OSError):
                directory.rmdir()
        raise


def write_credentials(
    directory: Path, chain: bytes, key: bytes, authority: bytes, trust_domain: str = ""
) -> None:
    """Write `proxy.pem`, `proxy.key` (0600), `ca.pem`, and `trust-domain` if known, into a directory.

    The directory is created if missing. All files are written before the first is renamed to its final name.
    Raises OSError, and then leaves everything as before.
    """
    made = not directory.exists()
    make_private(directory)
    try:
        with contextlib.ExitStack() as staged:
            # The key first and the certificate last: a program that sees the new certificate finds its key.
            wanted = [(KEY_FILE, key, 0o600), (AUTHORITY_FILE, authority, 0o644), (CHAIN_FILE, chain, 0o644)]
            if trust_domain:
                wanted.insert(0, (TRUST_DOMAIN_FILE, f"{trust_domain}\n".encode(), 0o644))
            files = [
                staged.enter_context(_staged(directory / name, content, mode))
                for name, content, mode in wanted
            ]
            for put in files:
                put()
    except OSError:
        if made:
            with contextlib.suppress(OSError):
                directory.rmdir()
        raise


@contextlib.contextmanager
def _staged(path: Path, content: bytes, mode: int) -> Iterator[Callable[[], None]]:
    """Write `content` to a new file beside `path`, and yield a function that renames the file to `path`.

    The file is deleted if it has not been renamed.
    """
    temporary = f".{path.name[:64]}.{secrets.token_hex(8)}"
    with links.directory(path.parent) as folder:

        def put() -> None:
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)

        descriptor = os.open(temporary, _NEW, mode, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                # os.open applies the umask to the mode.
                os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                # Without fsync, a crash after the rename could leave an empty file at `path`.
                os.fsync(file.fileno())
            yield put
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
