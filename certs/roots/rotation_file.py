"""Storage of a root change: `rotation.json`, the signing CA in `ca/` and the other one beside it.

`rotation.json` is authoritative. After a crash between two renames, the folders are put in order at the next
opening. Every function raises StateError if the file system refuses. One caller at a time.
"""

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import structlog

from certs.errors import StateError
from certs.issuers.ca_folder import fingerprint_in, names_in, read_ca, write_ca
from certs.issuers.root import Root, new_root
from certs.issuers.stored_ca import StoredCa, root_of
from certs.roots.rotation import Fingerprint, Rotation, Stage, begun
from certs.state import files
from certs.state.sealing import PLAIN, Seal
from meshwright.mesh.names import TrustDomain

FILE: Final = "rotation.json"

_SIGNER: Final = "ca"
_OTHER: Final = "ca.other"
_MOVING: Final = "ca.moving"
_MARK: Final = "first-proxy"
_KEY: Final = "ca.key"

_log = structlog.get_logger("certs.roots.kept")


def begin(
    state: Path,
    trust_domain: TrustDomain,
    now: datetime,
    seal: Seal = PLAIN,
    since: datetime | None = None,
    root: Root | None = None,
) -> Rotation:
    """Create a new root, or take the given one, and record the change from the current root.

    Only without a change under way. `since` is the recorded begin of the stage, `now` by default;
    certificates issued later have the roots of this stage.
    """
    if (state / _SIGNER).is_mount():
        raise StateError(
            f"{state / _SIGNER} is a mount point, which cannot be swapped with the folder "
            f"of another root; put its files into {state} itself, or rotate the root at "
            "its origin"
        )
    rotation = begun(
        Fingerprint(_load(state / _SIGNER, trust_domain, now, seal).fingerprint),
        _put(state, root or new_root(trust_domain, now), seal),
        since or now,
    )
    keep(state, rotation)
    return rotation


def keep(state: Path, rotation: Rotation) -> None:
    """Store a step of a change, which holds from then on, even if the process dies.

    If the disk fails or the folders cannot be renamed, the step is reverted as far as possible: otherwise the
    server would not start, or would contradict its report.
    """
    before = files.read(state / FILE)
    try:
        # The file before the folders: after a crash `recovered` can finish the renames by the file, but the
        # folders alone do not determine the step.
        files.write_private(state / FILE, _text(rotation))
        _order(state, rotation)
    except StateError:
        if before is not None:
            with suppress(StateError):
                files.write_private(state / FILE, before)
                _order(state, _read(state / FILE, before))
        raise


def end(state: Path) -> None:
    """Record the end of a root rotation: remove the other root with its key from the state directory."""
    try:
        # The key goes first: without it the rest is not a CA, whenever the process dies.
        (state / _OTHER / _KEY).unlink(missing_ok=True)
        (state / FILE).unlink(missing_ok=True)
        files.sync_directory(state)
    except OSError as error:
        raise StateError(f"cannot remove {state / FILE}: {error.strerror}") from error
    _remove(state / _OTHER)


def is_under_way(state: Path) -> bool:
    """Return whether a root is being changed; a CA exists then, even if the folder is missing."""
    return files.read(state / FILE) is not None


def recovered(state: Path) -> Rotation | None:
    """Return the root rotation under way, or None.

    Folders of the roots left by a crash are put in order first.
    """
    content = files.read(state / FILE)
    if content is None:
        _leave(state / _OTHER)  # left by a process that died at the begin or end of a change
        return None
    rotation = _read(state / FILE, content)
    _order(state, rotation)
    return rotation


def other_roots(state: Path) -> bytes:
    """Return the root beside the signing one, or the roots above, as PEM; possibly expired."""
    return _roots(state / _OTHER)


def signing_roots(state: Path) -> bytes:
    """Return the roots of the CA that signs now, as PEM: its own, or those above it; empty without a CA."""
    return _roots(state / _SIGNER)


def _roots(folder: Path) -> bytes:
    return files.read(folder / "roots.pem") or files.read(folder / "ca.pem") or b""


def require_signer(
    state: Path, trust_domain: TrustDomain, rotation: Rotation, now: datetime, seal: Seal = PLAIN
) -> None:
    """Raise StateError if a root cannot sign that must sign now or after the change.

    Otherwise the server would not start, or an aborted change would never end.
    """
    for folder in (state / _SIGNER, state / _OTHER):
        if any(_is(folder, fingerprint) for fingerprint in {rotation.signer, rotation.new}):
            _load(folder, trust_domain, now, seal)


def _load(folder: Path, trust_domain: TrustDomain, now: datetime, seal: Seal) -> Root:
    return root_of(read_ca(folder, seal), names_in(folder), trust_domain, now)


def _put(state: Path, root: Root, seal: Seal) -> Fingerprint:
    _leave(state / _OTHER)
    write_ca(state / _OTHER, state / f".{_OTHER}.new", StoredCa.of(root), seal)
    return Fingerprint(root.fingerprint)


def _order(state: Path, rotation: Rotation) -> None:
    """Put the folders in order: three renames, each of which may be the last before a crash."""
    # rename(2) cannot swap two folders, so that the swap takes a third name.
    signer, other, moving = (state / item for item in (_SIGNER, _OTHER, _MOVING))
    try:
        if signer.exists() and _is(signer, rotation.other):
            signer.rename(other if moving.exists() else moving)
        if not signer.exists():
            (moving if _is(moving, rotation.signer) else other).rename(signer)
        if moving.exists():
            moving.rename(other)
        if (other / _MARK).exists():  # it belongs to the signing root
            (other / _MARK).replace(signer / _MARK)
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
    if not (folder / _KEY).exists():
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


def _text(rotation: Rotation) -> bytes:
    document = {
        "stage": rotation.stage.value,
        "signer": rotation.signer,
        "other": rotation.other,
        "began": rotation.began.isoformat(),
        "since": rotation.since.isoformat(),
        "aborted": rotation.aborted,
        "given_up": {name: at.isoformat() for name, at in rotation.given_up.items()},
    }
    return (json.dumps(document, indent=2) + "\n").encode("ascii")


def _read(path: Path, content: bytes) -> Rotation:
    try:
        document: Mapping[str, Any] = json.loads(content)
        return Rotation(
            Stage(document["stage"]),
            Fingerprint(str(document["signer"])),
            Fingerprint(str(document["other"])),
            _time(document["began"]),
            _time(document["since"]),
            aborted=bool(document["aborted"]),
            given_up=MappingProxyType({str(name): _time(at) for name, at in document["given_up"].items()}),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StateError(
            f"{path} is damaged: {error}; restore it from a backup, or remove it if a root is not being "
            "rotated"
        ) from error


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return at
