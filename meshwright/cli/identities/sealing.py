"""Encrypting the private keys of a state directory that no server uses, for the command line."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from certs.custody import begun
from certs.errors import CertificateError
from certs.state import sealed_state
from meshwright.cli.errors import IssuingError
from meshwright.cli.identities.issuing import settings_of
from meshwright.cli.process.structlog_alone import on_standard_error
from meshwright.controller.errors import StartupError, StateInUse
from meshwright.controller.process import lock


def sealed(state: Path, passphrase: Path | None, new: Path | None, *, shared: bool = False) -> None:
    """Encrypt the keys, or have the `new` passphrase in the place of the other. Raises IssuingError."""
    with _alone(state, passphrase, shared=shared) as told:
        if new is not None:
            sealed_state.change_passphrase(state, told, new)
        else:
            sealed_state.opened(state, told)


def unsealed(state: Path, passphrase: Path | None, *, shared: bool = False) -> int:
    """Decrypt the keys for good; return how many files had some. Raises IssuingError."""
    with _alone(state, passphrase, shared=shared) as told:
        return sealed_state.unsealed(state, told)


@contextlib.contextmanager
def _alone(state: Path, passphrase: Path | None, *, shared: bool) -> Iterator[Path]:
    """Have a state directory that is there to oneself, and the file with its passphrase."""
    on_standard_error()
    told = settings_of(state, shared=shared, passphrase=passphrase).key_passphrase_file
    if told is None:
        raise IssuingError("the passphrase is missing: give its file with --key-passphrase-file")
    try:
        if not begun(state):
            raise IssuingError(
                f"{state} has no CA, so it is not a state directory: give the server's directory with --state"
            )
        lock.prepare(state, shared=shared)
        with lock.held(state):
            yield told
    except StateInUse as error:
        raise IssuingError(f"{error}: stop the server first") from error
    except (StartupError, CertificateError) as error:
        raise IssuingError(str(error)) from error
