"""Access of other users to private files: a rule for one file, and a walk over a state directory.

Mode and owner are checked (the group bits include an access list), of the target of a link.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from certs.errors import StateError

_OWN_FOLDERS: Final = ("ca", "ca.*", ".ca.*", "ads", "services", "webhook")
_OWN_FILES: Final = ("ledger*.sqlite*", "tokens.sqlite*", "followed.sqlite*", "*.json", "*.lock", ".ca.lock")
_PUBLIC: Final = frozenset({"ca.pem", "roots.pem"})
"""Names of files readable for all users, and writable only for the owner."""

_ROOT: Final = 0


def exposure(path: Path, mode: int, owner: int, user: int, *, public: bool = False) -> str:
    """Return how users other than `user` can access a file, with the remedy; empty if they cannot.

    Root is always allowed. `mode` is st_mode of stat(2), including the file type.
    """
    if owner not in (user, _ROOT):
        return f"{path} belongs to user {owner}, but the program runs as user {user}: chown {user} {path}"
    # A public file may be read by all users, but only its owner may write it.
    others = stat.S_IMODE(mode) & (0o022 if public else 0o077)
    if not others:
        return ""
    ways = [(0o044, "read"), (0o022, "written"), (0o011, "entered" if stat.S_ISDIR(mode) else "run")]
    found = " and ".join(word for bits, word in ways if others & bits)
    right = "700" if stat.S_ISDIR(mode) else "644" if public else "600"
    return (
        f"{path} can be {found} by other users (its mode is {stat.S_IMODE(mode):04o}): chmod {right} {path}"
    )


def user_of(directory: Path) -> int:
    """Return the user running the program for a directory.

    This is the current user, or the directory's owner if we are root.
    """
    user = os.geteuid()
    return user if user != _ROOT else directory.stat().st_uid


def exposure_of(path: Path, user: int | None = None, *, public: bool = False) -> str:
    """Return the `exposure` of a path; empty for a missing or unreadable file.

    `user` is the expected owner, None for the current user.
    """
    try:
        result = path.stat()
    except OSError:
        return ""
    whose = os.geteuid() if user is None else user
    return exposure(path, result.st_mode, result.st_uid, whose, public=public)


def exposures(state: Path, user: int | None = None) -> tuple[str, ...]:
    """Return a text for the state directory, and for each of our files inside, if others have access.

    Others are all users except `user` and root.
    """
    result = (exposure_of(path, user, public=path.name in _PUBLIC) for path in (state, *_ours(state)))
    return tuple(filter(None, result))


def own_files(state: Path) -> Iterator[Path]:
    """Yield our files in the folders of a state directory, including files left by a crash."""
    for top in _own_folders(state):
        for folder, folders, files in os.walk(top):
            folders.sort()
            yield from (Path(folder) / file for file in sorted(files))


def require_private(state: Path) -> None:
    """Raise StateError if others can access the state directory or our files inside."""
    result = exposures(state)
    if result:
        more = f" (the same holds for {len(result) - 1} more)" if result[1:] else ""
        raise StateError(
            f"{result[0]}{more}, or set shared_state (MESHWRIGHT_SHARED_STATE=true) if "
            "other users may have access"
        )


def _ours(state: Path) -> Iterator[Path]:
    for top in _own_folders(state):
        yield top
        for folder, folders, files in os.walk(top):
            yield from (Path(folder) / item for item in sorted(folders + files))
    for pattern in _OWN_FILES:
        yield from sorted(state.glob(pattern))


def _own_folders(state: Path) -> Iterator[Path]:
    """Yield our folders in a state directory, including the folders of a root rotation."""
    for pattern in _OWN_FOLDERS:
        yield from sorted(path for path in state.glob(pattern) if path.is_dir())
