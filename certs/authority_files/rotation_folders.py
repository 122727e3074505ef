"""Storage of a root rotation: `rotation.json`, the signing CA in `ca/` and the other one beside it.

`rotation.json` is authoritative. After a crash between two renames, the folders are put in order at the next
opening. Every function raises StateError if the file system refuses. One caller at a time.
"""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from certs.errors import StateError
from certs.issuers.ca_folder import FOLDER, fingerprint_in, write_ca
from certs.issuers.stored_ca import StoredCa
from certs.roots.rotation import Fingerprint, Rotation, read, written
from certs.state import files
from certs.state.sealing import Seal

FILE: Final = "rotation.json"
OTHER: Final = "ca.other"
"""Name of the other CA's folder in the state directory."""
MARK: Final = "first-proxy"
"""File with the serial of the first proxy certificate, in the folder of the signing CA."""
KEY: Final = "ca.key"
"""Name of the key's file in a CA's folder."""

_MOVING: Final = "ca.moving"

_log = structlog.get_logger("certs.roots.kept")


def begin(state: Path, other: StoredCa, rotation: Rotation, seal: Seal) -> None:
    """Store the CA beside the signing one, and record the root rotation from one to the other.

    Only without a root rotation under way.
    """
    if (state / FOLDER).is_mount():
        raise StateError(
            f"{state / FOLDER} is a mount point, which cannot be swapped with the folder "
            f"of another root; put its files into {state} itself, or rotate the root at "
            "its origin"
        )
    _leave(state / OTHER)
    write_ca(state / OTHER, state / f".{OTHER}.new", other, seal)
    keep(state, rotation)


def keep(state: Path, rotation: Rotation) -> None:
    """Store a step of a change, which holds from then on, even if the process dies.

    If the disk fails or the folders cannot be renamed, the step is reverted as far as possible: otherwise the
    server would not start, or would contradict its report.
    """
    before = files.read(state / FILE)
    try:
        # The file before the folders: after a crash `recover` can finish the renames by the file, but the
        # folders alone do not determine the step.
        files.write_private(state / FILE, written(rotation))
        _order(state, rotation)
    except StateError:
        with suppress(StateError, OSError):
            if before is None:
                (state / FILE).unlink(missing_ok=True)
            else:
                files.write_private(state / FILE, before)
                _order(state, read_rotation(state / FILE, before))
        raise


def end(state: Path) -> None:
    """Record the end of a root rotation: remove the other root with its key from the state directory."""
    try:
        # The key goes first: without it the rest is not a CA, whenever the process dies.
        (state / OTHER / KEY).unlink(missing_ok=True)
        (state / FILE).unlink(missing_ok=True)
        files.sync_directory(state)
    except OSError as error:
        raise StateError(f"cannot remove {state / FILE}: {error.strerror}") from error
    _remove(state / OTHER)


def recover(state: Path) -> None:
    """Put the folders of the CAs in order after a crash in the middle of a step."""
    content = files.read(state / FILE)
    if content is None:
        _leave(state / OTHER)  # left by a process that died at the begin or end of a change
    else:
        _order(state, read_rotation(state / FILE, content))


def _order(state: Path, rotation: Rotation) -> None:
    """Put the folders in order: three renames, each of which may be the last before a crash."""
    # rename(2) cannot swap two folders, so that the swap takes a third name.
    signer, other, moving = (state / item for item in (FOLDER, OTHER, _MOVING))
    if signer.is_symlink() and not signer.exists():  # otherwise a rename reports that this is no directory
        raise StateError(f"{signer} is a symbolic link to a missing directory")
    try:
        if signer.exists() and _is(signer, rotation.other):
            signer.rename(other if moving.exists() else moving)
        if not signer.exists():
            (moving if _is(moving, rotation.signer) else other).rename(signer)
        if moving.exists():
            moving.rename(other)
        if (other / MARK).exists():  # it belongs to the signing root
            (other / MARK).replace(signer / MARK)
        files.sync_directory(state)
    except OSError as error:
        raise StateError(f"cannot swap the roots in {state}: {error.strerror}") from error
    for folder, expected in ((signer, rotation.signer), (other, rotation.other)):
        if not _is(folder, expected):
            raise StateError(
                f"{folder} does not have the root {expected[:16]} that {state / FILE} "
                f"names; restore the root, or remove {FILE} if no root is being rotated"
            )


def _is(folder: Path, expected: Fingerprint) -> bool:
    return fingerprint_in(folder) == expected


def _leave(folder: Path) -> None:
    """Remove the folder of the other CA if no root rotation is recorded; rename it if it has a CA.

    A CA is kept, because its certificates may still be in use.
    """
    if not (folder / KEY).exists():
        _remove(folder)
        return
    number = 1
    while (aside := folder.with_name(f"{folder.name}.lost-{number}")).exists():
        number += 1
    try:
        folder.rename(aside)
        files.sync_directory(folder.parent)
    except OSError as error:
        raise StateError(f"cannot rename {folder}: {error.strerror}") from error
    _log.warning(
        "CA folder renamed, because the record of a root rotation is missing; delete the folder if no "
        "rotation was running, otherwise keep it until its certificates have expired",
        path=str(aside),
        lacking=FILE,
    )


def _remove(folder: Path) -> None:
    try:
        if folder.is_symlink():  # `ca/` may be a link; its target is not ours to remove
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
    except OSError as error:
        raise StateError(f"cannot remove {folder}: {error.strerror}") from error


def read_rotation(path: Path, content: bytes) -> Rotation:
    """Parse `rotation.json`. Raises StateError, which names the file and what to do."""
    try:
        return read(content)
    except ValueError as error:
        raise StateError(
            f"{path} is damaged: {error}; restore it from a backup, or remove it if a root is not being "
            "rotated"
        ) from error
