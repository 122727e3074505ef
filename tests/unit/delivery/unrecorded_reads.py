"""Search for histories that differ without the recorded reads of one table or index.

    python -m tests.unit.delivery.unrecorded_reads [NAME ...]

prints the lines of `KILLED_BY` in test_random_histories.py, which must be searched again when the generator
changes.
"""

import sys
from collections.abc import Callable
from typing import Any, Final

import pytest

from meshwright.engine.graph import Graph
from meshwright.engine.index import Entries
from meshwright.engine.node import Derivation, Node
from meshwright.engine.table import Table
from tests.meshes.random_meshes import Mesh
from tests.unit.delivery.histories import Replica, mismatch

STEPS: Final = 10
SEEDS: Final = 3000


def forgetful(name: str) -> Callable[[Graph, Derivation, dict[Node, None]], None]:
    """Return a replacement of `Graph._link` that forgets the reads of one table or index."""
    link = Graph._link

    def linking(self: Graph, node: Derivation, reads: dict[Node, None]) -> None:
        link(self, node, {item: None for item in reads if getattr(item, "origin", None) != name})

    return linking


def names() -> set[str]:
    """Return the names of all tables and of the indexes over them."""
    view = Replica(Mesh()).view
    made = (*vars(view).values(), *view.made.values())
    tables: list[Table[Any, Any]] = [item for item in made if isinstance(item, Table)]
    followers = [index for table in tables for index in table._followers if isinstance(index, Entries)]
    result = {item.name for item in tables} | {follower.name for follower in followers}
    return result | {"certificates", "trust bundle"}


def killer(name: str) -> tuple[int, int] | None:
    """Return the first history that differs without the reads of one table or index.

    The result is its seed and the first step that differs, None if no history differs.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Graph, "_link", forgetful(name))
        result = ((seed, mismatch(seed, STEPS)) for seed in range(SEEDS))
        return next(((seed, wrong.step) for seed, wrong in result if wrong is not None), None)


if __name__ == "__main__":
    for wanted in sorted(sys.argv[1:] or names()):
        sys.stdout.write(f'    "{wanted}": {killer(wanted)},\n')
        sys.stdout.flush()
