"""Encryption of the private keys in a state directory; `seal.json` holds the wrapped data key.

Each key file is replaced atomically, and can be read encrypted and unencrypted. So a change interrupted by a
crash, in either direction, continues at the next start. One caller at a time: the holder of the state
directory's lock.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from certs.errors import StateError
from certs.state import files
from certs.state.privacy import exposure_of, own_files
from certs.state.sealing import (
    PLAIN,
    Seal,
    WrappedKey,
    is_sealed,
    new_data_key,
    private_keys,
    read_wrapped,
    wrapped,
)

FILE: Final = "seal.json"
_GIVE: Final = "set key_passphrase_file (MESHWRIGHT_KEY_PASSPHRASE_FILE) to the file with the passphrase"
_LONGEST: Final = 4096

_log = structlog.get_logger("certs.sealed_state")


def opened(state: Path, passphrase: Path | None) -> Seal:
    """Return the seal of a state directory; with a passphrase, encrypt all unencrypted keys.

    `passphrase` is the file with the passphrase, or None. Raises StateError, before any change, for a wrong
    passphrase, or a missing one with encrypted keys.
    """
    content = files.read(state / FILE)
    if passphrase is None:
        if content is not None:
            raise StateError(
                f"the private keys in {state} are encrypted; {_GIVE}, or decrypt them "
                "permanently with `meshwright certs unseal`"
            )
        return PLAIN
    words = _passphrase(passphrase, state)
    if content is None:
        data_key = _begun(state, words)
    else:
        data_key = _data_key(state / FILE, content, words, passphrase)
    seal = Seal(data_key)
    _log_files(
        _rewritten(state, lambda text: bool(private_keys(text)), seal.closed),
        "private keys encrypted",
    )
    return seal


def read_passphrase(path: Path, state: Path, name: str = "key_passphrase_file") -> bytes:
    """Return the passphrase in a file, which must be outside of the state directory; raise StateError.

    `name` is the name of the setting or option in errors.
    """
    return _passphrase(path, state, name)


def unsealed(state: Path, passphrase: Path) -> int:
    """Decrypt all keys of a state directory for good; return the number of changed files.

    Raises StateError.
    """
    content = files.read(state / FILE)
    if content is None:
        raise StateError(f"the private keys in {state} are not encrypted")
    seal = Seal(_data_key(state / FILE, content, _passphrase(passphrase, state), passphrase))
    count = _rewritten(state, is_sealed, seal.opened)
    try:
        (state / FILE).unlink()  # last, because until here a key file may need it
        files.sync_directory(state)
    except OSError as error:
        raise StateError(f"cannot remove {state / FILE}: {error.strerror}") from error
    _log_files(count, "private keys decrypted")
    return count


def change_passphrase(state: Path, passphrase: Path, new: Path) -> None:
    """Encrypt the data key with another passphrase; the files with private keys do not change."""
    content = files.read(state / FILE)
    if content is None:
        raise StateError(
            f"the private keys in {state} are not encrypted, so there is no passphrase to change"
        )
    data_key = _data_key(state / FILE, content, _passphrase(passphrase, state), passphrase)
    files.write_private(state / FILE, wrapped(data_key, _passphrase(new, state)).written())


def _begun(state: Path, words: bytes) -> bytes:
    """Create and store the data key. Raises StateError if another one has encrypted private keys already."""
    for path in own_files(state):
        if is_sealed(files.read(path) or b""):
            raise StateError(
                f"{path} has an encrypted private key, but {state / FILE}, which is "
                f"needed to decrypt it, is missing; restore {FILE} from a backup. Without "
                "a backup the encrypted keys are lost; move their files to another place"
            )
    files.private_directory(state)
    data_key = new_data_key()
    files.write_private(state / FILE, wrapped(data_key, words).written())
    return data_key


def _data_key(path: Path, content: bytes, words: bytes, passphrase: Path) -> bytes:
    try:
        wrapped_key: WrappedKey = read_wrapped(content)
    except ValueError as error:
        raise StateError(
            f"{path} is damaged: {error}; restore it from a backup, because the private "
            "keys in this directory cannot be decrypted without it"
        ) from error
    try:
        return wrapped_key.data_key(words)
    except ValueError:
        raise StateError(
            f"the passphrase in {passphrase} does not decrypt the private keys in "
            f"{path.parent}; use the present passphrase. To change it, run `meshwright "
            "certs seal --new-passphrase-file`"
        ) from None


def _rewritten(state: Path, concerns: Callable[[bytes], bool], change: Callable[[bytes], bytes]) -> int:
    """Apply `change` to the state files for which `concerns` is true; return their number."""
    count = 0
    for path in own_files(state):
        content = files.read(path)
        if content is None or not concerns(content):
            continue
        if path.is_symlink():
            _log.warning("private key unchanged: its file is a symbolic link", link=str(path))
            continue
        try:
            changed = change(content)
        except ValueError as error:
            raise StateError(
                f"cannot use {path}: {error}; to continue without it, move it to another place"
            ) from None
        files.write_private(path, changed)
        count += 1
    return count


def _log_files(count: int, event: str) -> None:
    if count:
        _log.info(event, files=count)


def _passphrase(path: Path, state: Path, name: str = "key_passphrase_file") -> bytes:
    """Read a passphrase: the file's only line. Raises StateError, without the content."""
    message = f"{name} {path}"
    if path.resolve().is_relative_to(state.resolve()):
        raise StateError(
            f"{message} must not be in the state directory, because anyone who can read the keys "
            "could then read the passphrase too"
        )
    content = files.read(path)
    if content is None:
        raise StateError(f"{message} is missing")
    words = content.rstrip(b"\r\n")
    if not words or len(words) > _LONGEST or b"\n" in words:
        raise StateError(f"{message} must have a passphrase: one line of at most {_LONGEST} bytes")
    if exposed := exposure_of(path):
        _log.warning("passphrase file is accessible to other users", what=exposed)
    return words
