"""Marks of a state directory whose content is not a mesh's present state.

- `moved.json`: the mesh was moved into a store of several servers. What is left in the directory is older.
- `importing.json`: an import into the directory has not ended.

With either mark no server and no command uses the directory as the place of its CA and ledger. Otherwise, for
example, an old ledger would admit a proxy that was revoked after the move.

    {"form": 1, "root": "5f2c8a...", "store": "kubernetes", "at": "2026-11-30T05:00:00+00:00"}
"""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from certs.errors import StateError
from certs.state import files
from certs.state.json_fields import json_field, json_object, parse_time
from certs.state.shared_mark import SHARED_FILE

MOVED_FILE: Final = "moved.json"
IMPORTING_FILE: Final = "importing.json"

_FORM: Final = 1


@dataclass(frozen=True, slots=True)
class FinishedMove:
    """A finished move: the fingerprint of the CA that signed then, the setting `store`, and the time."""

    root: str
    store: str
    at: datetime

    def sentence(self, state: Path) -> str:
        """Return where the mesh of a directory is, and how to go back, for an operator."""
        return (
            f"the mesh of {state} (CA {self.root}) was moved into the store {self.store} at "
            f"{self.at.isoformat()}: start the server with the setting store {self.store}. To go back to a "
            "directory, run `meshwright state export` with this setting, and `meshwright state import` into "
            "an empty directory"
        )


def read_moved(state: Path) -> FinishedMove | None:
    """Return the mark of a moved directory, or None without one. Raises StateError for a damaged mark."""
    content = files.read(state / MOVED_FILE)
    if content is None:
        return None
    try:
        document = json_object(content)
        return FinishedMove(
            json_field(document, "root", str),
            json_field(document, "store", str),
            json_field(document, "at", parse_time),
        )
    except ValueError as error:
        raise StateError(
            f"{state / MOVED_FILE} is damaged: {error}. The mesh of this directory was moved into a store of "
            "several servers: start the server with its setting store"
        ) from None


def write_moved(state: Path, moved: FinishedMove) -> None:
    """Mark a directory whose mesh was moved. Raises StateError."""
    document = {"form": _FORM, "root": moved.root, "store": moved.store, "at": moved.at.isoformat()}
    files.write_private(state / MOVED_FILE, (json.dumps(document, indent=1) + "\n").encode())


def is_used_since_move(state: Path, ledger: Path) -> bool:
    """Return whether the ledger of a moved directory was written after the mark."""
    try:
        return ledger.stat().st_mtime_ns > (state / MOVED_FILE).stat().st_mtime_ns
    except OSError:
        return False


def forget_move(state: Path) -> None:
    """Remove the marks of a moved directory, for another move. Raises StateError."""
    try:
        # The mark of the move last: with it, the next attempt does the same.
        (state / SHARED_FILE).unlink(missing_ok=True)
        (state / MOVED_FILE).unlink(missing_ok=True)
        files.sync_directory(state)
    except OSError as error:
        raise StateError(f"cannot remove {state / MOVED_FILE}: {error.strerror}") from error


def begin_import(state: Path, root: str) -> None:
    """Mark a directory into which a mesh is imported now. Raises StateError."""
    document = {"form": _FORM, "root": root}
    files.write_private(state / IMPORTING_FILE, (json.dumps(document, indent=1) + "\n").encode())


def end_import(state: Path) -> None:
    """Remove the mark after everything is imported. Raises StateError."""
    try:
        files.sync_directory(state)
        (state / IMPORTING_FILE).unlink()
        files.sync_directory(state)
    except OSError as error:
        raise StateError(f"cannot remove {state / IMPORTING_FILE}: {error.strerror}") from error


def is_importing(state: Path) -> bool:
    """Return whether an import into a directory has begun, and has not ended."""
    return (state / IMPORTING_FILE).exists()


def require_present(state: Path) -> None:
    """Raise StateError for a directory whose content is not the present state of its mesh."""
    if (moved := read_moved(state)) is not None:
        raise StateError(moved.sentence(state))
    require_imported(state)


def require_imported(state: Path) -> None:
    """Raise StateError for a directory into which an import has not ended."""
    if is_importing(state):
        raise StateError(
            f"the import into {state} has not ended (file {IMPORTING_FILE}): run `meshwright state import` "
            "with the same file again"
        )
