"""Move of a state directory's mesh into a store of records, at the start of a server or by command.

The order makes the move safe at each moment: the store gets the CA last, and the directory its mark after
that. After an interruption the next attempt adds what is missing. In the meantime no server makes another CA
in the store.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

from certs.shared_records.custody import has_own_mesh
from certs.state import directory_marks
from certs.state.directory_marks import FinishedMove
from meshwright.controller.settings.settings import Settings
from meshwright.controller.sharing.migration.own_mesh import read_own_mesh
from meshwright.transfer.mesh_store import MeshStore
from meshwright.transfer.store_writer import WriteCount

DONE: Final = "mesh moved from the state directory into the shared store"

USED: Final = "moved state directory was used by an older program, so its news are moved too"

_log = structlog.get_logger("transfer")


def move(settings: Settings, store: MeshStore, clock: Callable[[], datetime]) -> WriteCount | None:
    """Move the mesh of the state directory into the store; return None if the directory has no mesh to move.

    If an older program has used the directory since an earlier move, what is new there is added to the store.

    The caller holds the lock of the directory, and waits in a thread. Raises StateError, for example if the
    store has another mesh. Then the directory stays as it is.
    """
    state = settings.state
    if not has_own_mesh(state):
        return None
    if directory_marks.read_moved(state) is not None:
        _log.warning(USED, state=str(state))
        directory_marks.forget_move(state)
    mesh = read_own_mesh(settings, clock)
    _log.info("mesh is being moved into the store", certificates=len(mesh.entries), root=mesh.root)
    written = store.write(mesh, clock())
    moved = FinishedMove(mesh.root, str(settings.store), clock().replace(microsecond=0))
    directory_marks.write_moved(state, moved)
    _log.info(DONE, state=str(state), store=moved.store, root=moved.root, written=written.written)
    return written
