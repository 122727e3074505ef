"""Tables of inputs: values by key, read through a mapping that records the reads."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar, cast, overload

from meshwright.engine.graph import Edit, Graph
from meshwright.engine.node import ABSENT, AbsentInput, Family, Source, same
from meshwright.engine.sorted_keys import SortedKeys

K = TypeVar("K")
V = TypeVar("V")
P = TypeVar("P")
T = TypeVar("T")


K_contra = TypeVar("K_contra", contravariant=True)
V_contra = TypeVar("V_contra", contravariant=True)


class Follower(Protocol[K_contra, V_contra]):
    """Index over a table; notified of each change before the table is written."""

    def follow(self, key: K_contra, old: V_contra | AbsentInput, new: V_contra | AbsentInput) -> None:
        """Handle the change of one value in the table. ABSENT represents a missing value."""


class Table(Mapping[K, V], Generic[K, V]):
    """Table of inputs; keys must be hashable and sortable, values immutable.

    Reading a key depends on this key alone, whether present or missing. Iterating and counting depend on the
    set of keys. Iteration is sorted.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self._graph = graph
        self.name = name
        self._values: dict[K, V] = {}
        self._cells = Family(name)
        self._keys = Source(Family(f"{name}, the set of keys"), None)
        self._sorted: SortedKeys[K] | None = None  # None until the first iteration
        self._followers: list[Follower[K, V]] = []

    def set(self, key: K, value: V) -> Edit:
        """Return the edit for writing a value to the table; writing an equal value is not a change."""
        return lambda: self._write(key, value)

    def remove(self, key: K) -> Edit:
        """Return the edit for removing a value from the table; removing a missing value is not a change."""
        return lambda: self._write(key, ABSENT)

    def followed(self, follower: Follower[K, V]) -> None:
        """Register an index for changes of this table, and inform the index of all present values."""
        self._followers.append(follower)
        for key, value in self._values.items():
            follower.follow(key, ABSENT, value)

    def values_unrecorded(self) -> Mapping[K, V]:
        """Return the values of the table without recording a read, for callers outside of computations."""
        return self._values

    def __getitem__(self, key: K) -> V:
        self._read(key)
        return self._values[key]

    # The inherited methods catch a KeyError, which is expensive because most look-ups find no key.
    def __contains__(self, key: object) -> bool:
        self._read(cast("K", key))
        return key in self._values

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | T, /) -> V | T: ...
    def get(self, key: K, default: object = None, /) -> object:
        """Return the value of a key in the table, or `default`."""
        self._read(key)
        return self._values.get(key, default)

    def __iter__(self) -> Iterator[K]:
        self._graph.record(self._keys)
        with self._graph.lock:
            if self._sorted is None:
                self._sorted = SortedKeys(self._values)
            return iter(self._sorted.all())

    def __len__(self) -> int:
        self._graph.record(self._keys)
        return len(self._values)

    def _read(self, key: K) -> None:
        if (reads := self._graph.reads()) is None:
            return
        cell = self._cells.nodes.get(key)
        if cell is None:
            cell = self._cells.nodes[key] = Source(self._cells, key)
        reads[cell] = None

    def _write(self, key: K, new: V | AbsentInput) -> None:
        old = self._values.get(key, ABSENT)
        if same(old, new):
            return
        for follower in self._followers:
            follower.follow(key, old, new)
        if new is ABSENT:
            del self._values[key]
        else:
            self._values[key] = new
        if (cell := self._cells.nodes.get(key)) is not None:
            self._graph.changed(cell)
        if old is ABSENT or new is ABSENT:
            if self._sorted is not None:
                (self._sorted.discard if new is ABSENT else self._sorted.add)(key)
            self._graph.changed(self._keys)


class Column(Table[K, P], Generic[K, V, P]):
    """One part of each value of a table, so that readers do not depend on the other parts.

    `part` is a pure function and must not raise, because it runs in the middle of a change. `None` means no
    entry. The column has the table's name, because reads of the column count as reads of the table. For
    example, a column with the driver named by each namespace is unaffected by a changed label.
    """

    def __init__(self, graph: Graph, table: Table[K, V], part: Callable[[V], P | None]) -> None:
        super().__init__(graph, table.name)
        self._part = part
        table.followed(self)

    def follow(self, key: K, old: V | AbsentInput, new: V | AbsentInput) -> None:
        """Update the column after the change of one value in the table."""
        del old
        part = None if isinstance(new, AbsentInput) else self._part(new)
        self._write(key, ABSENT if part is None else part)
