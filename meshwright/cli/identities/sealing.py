"""Encryption of the private keys in the state directory of a stopped server, for the command line."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from certs.custody import begun
from certs.errors import CertificateError
from certs.state import directory_marks, sealed_state
from meshwright.cli.errors import IssuingError
from meshwright.cli.identities.issuing import settings_of
from meshwright.cli.process.structlog_alone import on_standard_error
from meshwright.controller.errors import StartupError, StateInUse
from meshwright.controller.process import lock


def sealed(state: Path, passphrase: Path | None, new: Path | None, *, shared: bool = False) -> None:
    """Encrypt the private keys in a state directory; raise IssuingError.

    With `new`, replace the old passphrase instead.
    """
    with _alone(state, passphrase, shared=shared) as path:
        if new is not None:
            sealed_state.change_passphrase(state, path, new)
        else:
            sealed_state.opened(state, path)


def unsealed(state: Path, passphrase: Path | None, *, shared: bool = False) -> int:
    """Decrypt the keys permanently; return the number of files with keys. Raises IssuingError."""
    with _alone(state, passphrase, shared=shared) as path:
        return sealed_state.unsealed(state, path)


@contextlib.contextmanager
def _alone(state: Path, passphrase: Path | None, *, shared: bool) -> Iterator[Path]:
    """Lock a state directory against use by a server, and yield the path of the passphrase's file.

    Raises IssuingError.
    """
    on_standard_error()
    path = settings_of(state, shared=shared, passphrase=passphrase).key_passphrase_file
    if path is None:
        raise IssuingError("the passphrase is missing: give its file with --key-passphrase-file")
    try:
        directory_marks.require_present(state)
        if not begun(state):
            raise IssuingError(
                f"{state} lacks a CA, so it is not a state directory: give the server's directory with "
                "--state"
            )
        lock.prepare(state, shared=shared)
        with lock.hold_lock(state):
            yield path
    except StateInUse as error:
        raise IssuingError(f"{error}: stop the server first") from error
    except (StartupError, CertificateError) as error:
        raise IssuingError(str(error)) from error
