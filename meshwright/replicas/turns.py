"""Order of the servers of one mesh for a task of one server. A pure module.

The order is by rendezvous hashing: each server computes the same one without asking another, the tasks are
spread evenly, and the end of a server changes the first server of its own tasks only.
"""

import hashlib
from collections.abc import Iterable

from meshwright.records.contract import ReplicaId


def turn(task: str, me: ReplicaId, here: Iterable[ReplicaId]) -> int:
    """Return the turn of the server `me` for a task among the servers `here`, from 0.

    For example, 1 means: one other server should try before.
    """
    own = _weight(task, me)
    return sum(_weight(task, replica) > own for replica in here)


def _weight(task: str, replica: ReplicaId) -> bytes:
    return hashlib.blake2b(f"{replica}\n{task}".encode(), digest_size=16).digest()
