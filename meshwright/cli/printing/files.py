"""Writing files for people and proxies: complete or not at all, private where they must be."""

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
"""More than a proxy's files come to, below however many intermediates."""


def write(path: Path, content: bytes, mode: int) -> None:
    """Replace `path` by `content` with the permissions `mode`, in one step.

    A link at `path` is replaced, not followed; nor is another user's link followed on the way there. Raises
    OSError.
    """
    with _staged(path, content, mode) as put:
        put()


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[IO[str]]:
    """Make a file that was not there before, for nobody else (0600), and remove it where the block raises.

    Raises OSError, also for a file that is there.
    """
    descriptor = os.open(path, _NEW, 0o600)
    file = os.fdopen(descriptor, "w")
    try:
        yield file
    except BaseException:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it would write what it could not once more
            file.close()
        raise
    file.close()


@contextlib.contextmanager
def place_for_credentials(directory: Path) -> Iterator[None]:
    """See, before they are made, that `write_credentials` can write there; raise OSError.

    The directory is made if missing, and goes again where the block raises.
    """
    made = not directory.exists()
    make_private(directory)
    try:
        for name in (KEY_FILE, AUTHORITY_FILE, CHAIN_FILE, TRUST_DOMAIN_FILE):
            if (directory / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(directory / name))
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
    """Write `proxy.pem`, `proxy.key` (0600) and `ca.pem` into `directory`, which is made if missing.

    And `trust-domain`, where it is known.

    None of them is put in place before all are written. The key goes first: whoever sees a new certificate
    finds its key. Raises OSError; then everything is as it was.
    """
    made = not directory.exists()
    make_private(directory)
    try:
        with contextlib.ExitStack() as staged:
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

    The file is removed if it has not been renamed.
    """
    temporary = f".{path.name[:64]}.{secrets.token_hex(8)}"
    with links.directory(path.parent) as folder:

        def put() -> None:
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)

        descriptor = os.open(temporary, _NEW, mode, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            yield put
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
