"""Indexes: keys of a table by a property of their inputs, updated with every change."""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import Final, Generic, TypeVar, cast, overload

from meshwright.engine.graph import Graph
from meshwright.engine.node import ABSENT, AbsentInput, Derivation, Family, Function, Source
from meshwright.engine.sorted_keys import SortedKeys, with_key, without_key
from meshwright.engine.table import Table

FEW: Final = 4
"""Number of entries up to which a linear search is faster than a hash set."""

E = TypeVar("E", bound=Hashable)
K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class Entries(Mapping[E, tuple[K, ...]], Generic[E, K]):
    """Sorted keys by entry. Reading an entry depends on this entry, iterating on the set of entries.

    An entry without keys does not exist. The order of iteration is undefined, because entries need not be
    sortable. For example, an index of workloads by namespace has the entry `shop` with the keys of all
    workloads in `shop`.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self._graph = graph
        self.name = name
        self._level = 0
        self._members: dict[E, tuple[K, ...] | SortedKeys[K]] = {}
        self._nodes = Family(name)
        self._entries = Source(Family(f"{name}, the set of entries"), None)
        self._watched: dict[E, None] | None = None
        self._several: dict[E, None] | None = None  # None until the first call of `several`
        self._crowds = Source(Family(f"{name}, the entries of several"), None)

    def watch(self) -> None:
        """Start to record changed index entries, beginning with all present ones; see `take_changed`."""
        self._watched = dict.fromkeys(self._members)

    def take_changed(self) -> tuple[E, ...]:
        """Return the index entries changed, added or removed since the last call."""
        changed = tuple(self._watched or ())
        self._watched = {}
        return changed

    def several(self) -> tuple[E, ...]:
        """Return the entries with more than one key. The caller depends on the set of these entries."""
        self._graph.record(self._crowds)
        with self._graph.lock:
            if self._several is None:
                self._several = {item: None for item, keys in self._members.items() if len(keys) > 1}
            return tuple(self._several)

    def __getitem__(self, entry: E) -> tuple[K, ...]:
        self._read(entry)
        return self._keys_of(self._members[entry])

    # The inherited methods catch a KeyError, which is expensive because most look-ups find no entry.
    def __contains__(self, entry: object) -> bool:
        self._read(cast("E", entry))
        return entry in self._members

    @overload
    def get(self, entry: E, /) -> tuple[K, ...] | None: ...
    @overload
    def get(self, entry: E, default: tuple[K, ...] | T, /) -> tuple[K, ...] | T: ...
    def get(self, entry: E, default: object = None, /) -> object:
        """Return the keys of an index entry, or `default` for a missing entry."""
        self._read(entry)
        result = self._members.get(entry)
        return default if result is None else self._keys_of(result)

    def _keys_of(self, result: tuple[K, ...] | SortedKeys[K]) -> tuple[K, ...]:
        if isinstance(result, SortedKeys):
            with self._graph.lock:
                return result.all()
        return result

    def __iter__(self) -> Iterator[E]:
        self._graph.record(self._entries)
        with self._graph.lock:
            return iter(tuple(self._members))

    def __len__(self) -> int:
        self._graph.record(self._entries)
        return len(self._members)

    def _read(self, entry: E) -> None:
        if (reads := self._graph.reads()) is None:
            return
        node = self._nodes.nodes.get(entry)
        if node is None:
            node = self._nodes.nodes[entry] = Source(self._nodes, entry, self._level)
        reads[node] = None

    def _move(self, key: K, before: Collection[E], after: Collection[E]) -> None:
        if before and after:
            was, now = _searchable(before), _searchable(after)
            before = [item for item in before if item not in now]
            after = [item for item in after if item not in was]
        for entry in before:
            self._leave(entry, key)
        for entry in after:
            self._join(entry, key)

    def _join(self, entry: E, key: K) -> None:
        alone = (key,)
        members = self._members.setdefault(entry, alone)
        if members is alone:
            self._graph.changed(self._entries)
        else:
            self._members[entry] = with_key(members, key)
            self._crowded(entry)
        self._changed(entry)

    def _leave(self, entry: E, key: K) -> None:
        left = without_key(self._members[entry], key)
        if left:
            self._members[entry] = left
            self._crowded(entry)
        else:
            del self._members[entry]
            self._graph.changed(self._entries)
        self._changed(entry)

    def _crowded(self, entry: E) -> None:
        if self._several is None or (len(self._members[entry]) > 1) is (entry in self._several):
            return
        if self._several.pop(entry, ABSENT) is ABSENT:
            self._several[entry] = None
        self._graph.changed(self._crowds)

    def _changed(self, entry: E) -> None:
        nodes = self._nodes.nodes  # empty while an index is filled for the first time
        if nodes and (node := nodes.get(entry)) is not None:
            self._graph.changed(node)
        if self._watched is not None:
            self._watched[entry] = None


def _searchable(entries: Collection[E]) -> Collection[E]:
    """Return entries as a collection with fast membership tests; a key may be in thousands of entries."""
    return frozenset(entries) if len(entries) > FEW else entries


class Index(Entries[E, K], Generic[E, K, V]):
    """Index over the inputs themselves; `entries_of` is a pure function of key and value, without reads.

    The function must not raise, because it runs in the middle of a change.
    """

    def __init__(
        self, graph: Graph, name: str, table: Table[K, V], entries_of: Callable[[K, V], Collection[E]]
    ) -> None:
        super().__init__(graph, name)
        self._table = table
        self._entries_of = entries_of
        table.followed(self)

    def lookup(self, entry: E) -> tuple[V, ...]:
        """Return the table values of an entry's keys, sorted by key; empty for a missing entry."""
        return tuple(self._table[key] for key in self.get(entry, ()))

    def follow(self, key: K, old: V | AbsentInput, new: V | AbsentInput) -> None:
        """Update the index entries after the change of one input in the table."""
        before = () if isinstance(old, AbsentInput) else self._entries_of(key, old)
        after = () if isinstance(new, AbsentInput) else self._entries_of(key, new)
        self._move(key, before, after)


class DerivedIndex(Entries[E, K], Generic[E, K, V]):
    """Index over derived values; `entries_of` may read everything that was declared before.

    A key whose function call raises is in no entry, and is listed in `failures`.
    """

    def __init__(
        self, graph: Graph, name: str, table: Table[K, V], entries_of: Callable[[K], Collection[E]]
    ) -> None:
        super().__init__(graph, name)
        self._level = graph.add_stage(self)
        self._entries.level = self._crowds.level = self._level
        self._derivations = Function(name, entries_of, (), single=True)
        self._placed: dict[K, Collection[E]] = {}
        self._pending: dict[Derivation, None] = {}
        self._failures: dict[K, Exception] = {}
        self._removed: list[K] = []
        table.followed(self)

    def failures(self) -> Mapping[K, Exception]:
        """Return the keys whose function call raised, with the error; the read is not recorded."""
        return self._failures

    def follow(self, key: K, old: V | AbsentInput, new: V | AbsentInput) -> None:
        """Handle an added or removed table key; changed values are found by recorded reads."""
        if old is ABSENT:
            self._graph.keep(self._derivations.node(key), self._pending)
        elif new is ABSENT:
            node = self._derivations.nodes.pop(key)
            self._graph.discard(node)
            self._removed.append(key)

    def settle(self) -> None:
        """Update the index, and mark the derived values computed from a changed entry."""
        # Removed keys first, because a key removed and added again in one change is in both lists.
        removed, self._removed = self._removed, []
        for key in removed:
            self._place(key, ())
        pending = tuple(self._pending)
        self._pending.clear()
        for node in pending:
            key = cast("K", node.key)
            self._graph.refresh_before(node, self._level, self.name)
            if (error := node.error) is None:
                self._place(key, cast("Collection[E]", node.outcome))
            else:
                self._place(key, ())
                self._failures[key] = error

    def _place(self, key: K, entries: Collection[E]) -> None:
        self._failures.pop(key, None)
        self._move(key, self._placed.pop(key, ()), entries)
        if entries:
            self._placed[key] = entries
