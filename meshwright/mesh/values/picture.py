"""Pictures: immutable sorted mappings whose differences from an earlier one are cheap to find."""

# ruff: noqa: SLF001 - pictures look into others of their own class

import itertools
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final, Generic, Self, TypeVar, overload

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
D = TypeVar("D")

REMEMBERED: Final = 64
"""Number of changes that a picture remembers."""

_ABSENT: Final[Any] = object()
"""Marker in a layer for a deleted key; None is used for deletion in edits only."""


class Picture(Mapping[K, V], Generic[K, V]):
    """An immutable mapping that iterates in the order of its keys, which must be sortable.

    A picture made by `changed` shares the table of its predecessor and stores the differences in a layer
    above. When the layer exceeds about the square root of the table's size, both are merged into a new table.
    So the change of one key costs the same for any table size, except for an occasional copy. The last
    changes are remembered, so that `since` an earlier picture costs only what has changed; for unrelated
    pictures everything is compared.
    """

    __slots__ = ("_above", "_length", "_mark", "_sorted", "_steps", "_table")

    def __init__(self, values: Mapping[K, V] | None = None) -> None:
        """Copy the values of a mapping into the picture."""
        self._table: dict[K, V] = dict(values or {})
        self._above: dict[K, V] = {}
        self._length = len(self._table)
        self._steps: tuple[tuple[object, tuple[K, ...]], ...] = ()
        # Steps name a picture by this mark and not by the picture itself, which would keep every predecessor
        # alive.
        self._mark = object()
        self._sorted: tuple[K, ...] | None = None

    @classmethod
    def from_mapping(cls, values: Mapping[K, V]) -> "Picture[K, V]":
        """Return a mapping as a picture; the same object if the mapping is a picture already."""
        return values if isinstance(values, Picture) else Picture(values)

    def changed(self, edits: Mapping[K, V | None]) -> Self:
        """Return the picture with these edits, None for a deletion; itself if nothing changes.

        A value equal to the existing one does not replace the existing one. For example, the edits `{"a":
        None, "b": 2}` turn `{"a": 1}` into `{"b": 2}`.
        """
        if not self._length:  # a first picture has no predecessor to share
            first = type(self)({key: value for key, value in edits.items() if value is not None})
            return first if first._length else self
        edits = {key: value for key, value in edits.items() if self.get(key) != value}
        if not edits:
            return self
        after = type(self)()
        layer = {key: _ABSENT if value is None else value for key, value in edits.items()}
        after._above, after._table = {**self._above, **layer}, self._table
        # A larger layer costs each change more, a smaller one makes copies of the table more frequent: the
        # square root balances both.
        if len(after._above) ** 2 > len(self._table):
            after._table, after._above = _flat(self._table, after._above), {}
        # A change of most keys is not remembered, because comparing everything costs no more.
        if 2 * len(edits) <= len(self._table):
            after._steps = (*self._steps[1 - REMEMBERED :], (self._mark, tuple(edits)))
        moved = [(value is not None) - (key in self) for key, value in edits.items()]
        after._length = self._length + sum(moved)
        after._sorted = None if any(moved) else self._sorted
        return after

    def since(self, before: "Picture[K, V]") -> Mapping[K, V | None]:
        """Return the keys that differ from an earlier picture, with values; None for deleted keys."""
        if before is self:
            return {}
        if not before._length:
            return self._items()
        keys = self._keys_since(before)
        result: dict[K, V | None] = {}
        for key in dict.fromkeys(itertools.chain(self._items(), before._items())) if keys is None else keys:
            # A key may have been changed and changed back, so the values are compared once more.
            value, was = self.get(key), before.get(key)
            if value is not was and value != was:
                result[key] = value
        return result

    def _items(self) -> dict[K, V]:
        """Return all items without order; the caller must not change them."""
        return _flat(self._table, self._above) if self._above else self._table

    def _keys_since(self, before: "Picture[K, V]") -> dict[K, None] | None:
        result: dict[K, None] = {}
        for mark, keys in reversed(self._steps):
            result.update(dict.fromkeys(keys))
            if mark is before._mark:
                return result
        return None

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: V | D | None = None) -> V | D | None:
        """Return the value of a key, or `default`."""
        if self._above and (value := self._above.get(key)) is not None:
            return default if value is _ABSENT else value
        return self._table.get(key, default)

    def __getitem__(self, key: K) -> V:
        if self._above and (value := self._above.get(key)) is not None:
            if value is _ABSENT:
                raise KeyError(key)
            return value
        return self._table[key]

    def __contains__(self, key: object) -> bool:
        if key in self._above:
            return self._above[key] is not _ABSENT
        return key in self._table

    def __iter__(self) -> Iterator[K]:
        if self._sorted is None:
            self._sorted = tuple(sorted(self._items()))  # type: ignore[type-var]  # keys are sortable
        return iter(self._sorted)

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Picture):
            return self is other or (len(self) == len(other) and not self.since(other))
        return self._items() == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a mapping

    def __repr__(self) -> str:
        return f"Picture({ {key: self[key] for key in self} })"


def _flat(table: dict[K, V], above: dict[K, V]) -> dict[K, V]:
    """Return a table merged with the layer above it."""
    result = {**table, **above}
    for key, value in above.items():
        if value is _ABSENT:
            del result[key]
    return result
