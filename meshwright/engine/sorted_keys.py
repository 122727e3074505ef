"""Sorted keys with cheap insertion and removal: without a new sort, and without a copy of long lists."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K", bound=Any)

COPIED: Final = 32
"""Number of keys up to which they are a plain tuple.

Copying so few costs as much as finding the place of a key.
"""


class SortedKeys(Generic[K]):
    """Many keys in order. A change costs a binary search, and reading all keys one copy."""

    __slots__ = ("_all", "_keys")

    def __init__(self, keys: Iterable[K]) -> None:
        self._keys: list[K] = sorted(keys)
        self._all: tuple[K, ...] | None = None

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: K) -> None:
        """Insert a key, unless present."""
        place = _place(self._keys, key)
        if place == len(self._keys) or self._keys[place] != key:
            self._keys.insert(place, key)
            self._all = None

    def discard(self, key: K) -> None:
        """Remove a key, if present."""
        place = bisect_left(self._keys, key)
        if place < len(self._keys) and self._keys[place] == key:
            del self._keys[place]
            self._all = None

    def all(self) -> tuple[K, ...]:
        """Return all keys; the same tuple until a key is added or removed."""
        if self._all is None:
            self._all = tuple(self._keys)
        return self._all


def _place(keys: Sequence[K], key: K) -> int:
    """Return the position of a key to be inserted."""
    # The end first: an initial load inserts keys in order.
    return len(keys) if keys and keys[-1] < key else bisect_left(keys, key)


def with_key(keys: tuple[K, ...] | SortedKeys[K], key: K) -> tuple[K, ...] | SortedKeys[K]:
    """Return sorted keys with one more: a tuple up to COPIED keys, else a SortedKeys, changed in place."""
    if isinstance(keys, SortedKeys):
        keys.add(key)
        return keys
    place = _place(keys, key)
    if place < len(keys) and keys[place] == key:
        return keys
    if len(keys) == COPIED:
        return SortedKeys((*keys, key))
    return (*keys[:place], key, *keys[place:])


def without_key(keys: tuple[K, ...] | SortedKeys[K], key: K) -> tuple[K, ...] | SortedKeys[K]:
    """Return sorted keys without one; a tuple again at half of COPIED, so the type does not alternate."""
    if isinstance(keys, SortedKeys):
        keys.discard(key)
        return keys.all() if len(keys) <= COPIED // 2 else keys
    place = bisect_left(keys, key)
    if place < len(keys) and keys[place] == key:
        return keys[:place] + keys[place + 1 :]
    return keys
