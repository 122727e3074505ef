"""Lookups of a view: mappings over tables and indexes, whose reads are recorded one by one."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from engine.index import Entries
from engine.table import Table

E = TypeVar("E", bound=Hashable)
K = TypeVar("K")
V = TypeVar("V")


class Grouped(Mapping[E, tuple[V, ...]], Generic[E, K, V]):
    """The values of a table by an index, each group sorted by its keys, the groups by theirs."""

    def __init__(self, entries: Entries[E, K], table: Table[K, V]) -> None:
        self._entries = entries
        self._table = table

    def __getitem__(self, entry: E) -> tuple[V, ...]:
        return tuple(self._table[key] for key in self._entries[entry])

    def __contains__(self, entry: object) -> bool:
        return entry in self._entries  # whoever asks only this does not read the values

    def __iter__(self) -> Iterator[E]:
        return iter(sorted(self._entries))  # type: ignore[type-var]  # what a view is indexed by is sortable

    def __len__(self) -> int:
        return len(self._entries)


class First(Mapping[E, V], Generic[E, K, V]):
    """The first value by key of each group of an index."""

    def __init__(self, entries: Entries[E, K], table: Table[K, V]) -> None:
        self._entries = entries
        self._table = table

    def __getitem__(self, entry: E) -> V:
        return self._table[self._entries[entry][0]]

    def __contains__(self, entry: object) -> bool:
        return entry in self._entries

    def __iter__(self) -> Iterator[E]:
        return iter(sorted(self._entries))  # type: ignore[type-var]  # what a view is indexed by is sortable

    def __len__(self) -> int:
        return len(self._entries)


class Found(Mapping[K, V], Generic[K, V]):
    """What a derived function finds for each key of a table; where it finds nothing the key is not there."""

    def __init__(self, keys: Mapping[K, object], find: Callable[[K], V | None]) -> None:
        self._keys = keys
        self._find = find

    def __getitem__(self, key: K) -> V:
        found = self._find(key)
        if not found:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[K]:
        return (key for key in self._keys if self._find(key))

    def __len__(self) -> int:
        return sum(1 for _ in self)
