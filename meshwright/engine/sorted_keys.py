"""Keys in order, one put in or taken out: without sorting all of them again, or copying many."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K", bound=Any)

COPIED: Final = 32
"""Keys that are a tuple and no more, until they are more:
to copy so many costs what finding the place does."""


class SortedKeys(Generic[K]):
    """Many keys in order; a change costs the search for its place, and asking for all of them one copy."""

    __slots__ = ("_all", "_keys")

    def __init__(self, keys: Iterable[K]) -> None:
        self._keys: list[K] = sorted(keys)
        self._all: tuple[K, ...] | None = None

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: K) -> None:
        """Put a key in, if it is not there."""
        place = _place(self._keys, key)
        if place == len(self._keys) or self._keys[place] != key:
            self._keys.insert(place, key)
            self._all = None

    def discard(self, key: K) -> None:
        """Take a key out, if it is there."""
        place = bisect_left(self._keys, key)
        if place < len(self._keys) and self._keys[place] == key:
            del self._keys[place]
            self._all = None

    def all(self) -> tuple[K, ...]:
        """Return the keys: the very same tuple until one of them is another."""
        if self._all is None:
            self._all = tuple(self._keys)
        return self._all


def _place(keys: Sequence[K], key: K) -> int:
    """Return the place of a key that is put in: most often, when all is read first, that is the end."""
    return len(keys) if keys and keys[-1] < key else bisect_left(keys, key)


def with_key(keys: tuple[K, ...] | SortedKeys[K], key: K) -> tuple[K, ...] | SortedKeys[K]:
    """Return sorted keys with one more: a tuple as long as they are few, then what can be added to."""
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
    """Return sorted keys without one of them: a tuple again when they are but half as few as one may have."""
    if isinstance(keys, SortedKeys):
        keys.discard(key)
        return keys.all() if len(keys) <= COPIED // 2 else keys
    place = bisect_left(keys, key)
    if place < len(keys) and keys[place] == key:
        return keys[:place] + keys[place + 1 :]
    return keys
