"""The mark of a state directory whose server uses a shared store: the identity of the mesh, and its CA.

Without the mark a command or another start would make a CA in the directory. The identity shows that the
settings lead to the store of another mesh, whose servers would refuse all proxies of this one.

    {"mesh": "5f2c8a...", "authority": "ab12cd..."}
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from certs.errors import StateError
from certs.state import files

SHARED_FILE: Final = "shared-store"


@dataclass(frozen=True, slots=True)
class SharedMesh:
    """A mesh in a shared store: its identity (`RecordSeal.mesh`), and the fingerprint of the signing CA."""

    mesh: str
    authority: str


def read_mark(state: Path) -> SharedMesh | None:
    """Return the mesh of a state directory; None without a mark, or with one of an unknown mesh."""
    content = files.read(state / SHARED_FILE)
    try:
        document = json.loads(content or b"{}")
        return SharedMesh(str(document["mesh"]), str(document["authority"]))
    except (ValueError, KeyError, TypeError):
        return None


def write_mark(state: Path, there: SharedMesh) -> None:
    """Mark a state directory. Raises StateError."""
    files.private_directory(state)
    document = {"mesh": there.mesh, "authority": there.authority}
    files.write_private(state / SHARED_FILE, json.dumps(document).encode() + b"\n")


def require_mesh(state: Path, there: SharedMesh) -> None:
    """Raise StateError if a state directory is marked with another mesh than the one in the store."""
    own = read_mark(state)
    if own is not None and own.mesh != there.mesh:
        raise StateError(
            f"the state directory {state} belongs to a mesh with the CA {own.authority}, but the shared "
            f"store has another mesh, with the CA {there.authority}: correct the settings of the store, or, "
            f"if this server should join the other mesh, remove the directory {state}"
        )


def require_no_mesh(state: Path) -> None:
    """Raise StateError if a state directory is marked with a mesh, but the store has none."""
    own = read_mark(state)
    if own is not None:
        raise StateError(
            f"the state directory {state} belongs to a mesh with the CA {own.authority}, but the shared "
            "store has no CA: correct the settings of the store, restore its records from a backup, or, to "
            f"begin a new mesh, remove the directory {state}"
        )
