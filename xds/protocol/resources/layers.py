"""Immutable mappings with shared common entries.

The cost of a change is the number of changed entries, not the size of the whole.
"""

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from math import isqrt
from operator import is_, ne
from types import MappingProxyType
from typing import Any, Final, Self, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

FLAT: Final = 64
"""Entries up to which a mapping is copied on a change, into a separate dictionary."""

NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class Layers(Mapping[K, V]):
    """An immutable mapping: a few entries laid over a larger mapping, possibly shared.

    For example, `{"b": 3}` over `{"a": 1, "b": 2}` is `{"a": 1, "b": 3}`.

    Keys are ordered, and iteration keeps the order. A value is never None, because None in the upper layer
    hides an entry of the lower layer.
    """

    __slots__ = ("_size", "base", "over")

    def __init__(
        self, base: Mapping[K, V] = NOTHING, over: Mapping[K, V | None] = NOTHING, size: int | None = None
    ) -> None:
        """Lay `over` over `base`; the keys of `base` must be in order.

        `size` is the number of entries of both together.
        """
        self.base = base
        self.over = over
        self._size = len(base) if size is None else size

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V) -> V: ...
    @overload
    def get(self, key: K, /, default: T) -> V | T: ...
    def get(self, key: K, /, default: object = None) -> object:
        """Return the value of a key, or the default."""
        if self.over and key in self.over:
            result = self.over[key]
            return default if result is None else result
        return self.base.get(key, default)

    def __getitem__(self, key: K) -> V:
        if (result := self.get(key)) is None:
            raise KeyError(key)
        return result

    def __contains__(self, key: object) -> bool:
        if self.over and key in self.over:
            return self.over[key] is not None  # type: ignore[index]
        return key in self.base

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[K]:
        if not self.over:
            return iter(self.base)
        keys = [key for key in self.base if key not in self.over]
        keys += (key for key, value in self.over.items() if value is not None)
        return iter(sorted(keys))  # type: ignore[type-var]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Layers):
            return len(self) == len(other) and next(self.differing(other, ne), None) is None
        return super().__eq__(other)

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def keys(self) -> KeysView[K]:
        """Return the keys."""
        return super().keys() if self.over else self.base.keys()

    def values(self) -> ValuesView[V]:
        """Return the values, in the order of their keys."""
        return super().values() if self.over else self.base.values()

    def items(self) -> ItemsView[K, V]:
        """Return the entries, in the order of their keys."""
        return super().items() if self.over else self.base.items()

    def absent(self, keys: frozenset[K]) -> frozenset[K]:
        """Return the keys missing in the mapping; faster than a test of each."""
        if not self._size:
            return keys
        base = self.base
        left = base.absent(keys) if isinstance(base, Layers) else keys.difference(base)
        if not self.over:
            return left
        there = {key for key, value in self.over.items() if value is not None}
        return left.difference(there) | keys.intersection(self.over).difference(there)

    def has_keys_of(self, other: "Layers[K, Any]") -> bool:
        """Return whether both mappings have the same keys, without a look at a common base."""
        if self is other or len(self) != len(other):
            return self is other
        base, over = self.merged()
        other_base, other_over = other.merged()
        if base is not other_base:
            return not other.absent(frozenset(self))
        return all((key in self) == (key in other) for key in {*over, *other_over})

    def merged(self) -> tuple[Mapping[K, V], Mapping[K, V | None]]:
        """Return the lowest mapping, and all layers above it merged into one."""
        base: Mapping[K, V] = self.base
        over = self.over
        while isinstance(base, Layers):
            over = {**base.over, **over}
            base = base.base
        return base, over

    def laid_over(self, changes: Mapping[K, V | None]) -> tuple[Mapping[K, V], Mapping[K, V | None], int]:
        """Return base, upper layer and size after changes (None removes a key).

        The upper layer is limited to about the square root of the size. Then building a new base costs,
        spread over the changes, about as much per change as copying the upper layer.
        """
        size = self._size
        for key, value in changes.items():
            size += (value is not None) - (key in self)
        if size <= FLAT or len(self.over) + len(changes) > max(FLAT, isqrt(size)):
            return _merged(self.base, self.over, changes), NOTHING, size
        over = {**self.over, **changes}
        for key, value in changes.items():
            if value is None and key not in self.base:
                del over[key]
        return self.base, over, size

    def changed(self, changes: Mapping[K, V | None]) -> Self:
        """Return a mapping with changed entries (None removes a key)."""
        return type(self)(*self.laid_over(changes)) if changes else self

    def differing(self, other: "Layers[K, V]", unlike: Callable[[V | None, V | None], bool]) -> Iterator[K]:
        """Yield the keys with `unlike` values; a missing value is None.

        Mappings with the same base are compared by their upper layers only. With equal keys, identical values
        are skipped.
        """
        base, over = self.merged()
        other_base, other_over = other.merged()
        if base is other_base:
            keys = {*over, *other_over}
        elif len(base) == len(other_base) and all(map(is_, base, other_base)):
            pairs = zip(base, base.values(), other_base.values(), strict=True)
            keys = {*over, *other_over, *(key for key, mine, theirs in pairs if mine is not theirs)}
        else:
            keys = {*self, *other}
        for key in keys:
            mine, theirs = self.get(key), other.get(key)
            if mine is not theirs and unlike(mine, theirs):
                yield key


def _merged(base: Mapping[K, V], *layers: Mapping[K, V | None]) -> dict[K, V]:
    """Merge layers into a dictionary sorted by key; sorting is skipped without a new key."""
    merged = dict(base)
    came = False
    for layer in layers:
        for key, value in layer.items():
            if value is None:
                merged.pop(key, None)
            else:
                came = came or key not in merged
                merged[key] = value
    return dict(sorted(merged.items())) if came else merged


NO_LAYERS: Final[Layers[Any, Any]] = Layers()
