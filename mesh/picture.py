"""Pictures: what is known under each key at one moment, and cheaply, how two moments differ."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Final, Generic, Self, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

REMEMBERED: Final = 64
"""How many steps a picture knows by which it came to be."""


class Picture(Mapping[K, V], Generic[K, V]):
    """An immutable mapping that iterates in the order of its keys, which must be sortable.

    A picture made by `changed` remembers the last steps that led to it, so that `since` an earlier one costs
    what has changed; between pictures of which neither led to the other, it compares all there is. Making
    one copies the table, but looks at what is changed alone.
    """

    __slots__ = ("_mark", "_sorted", "_steps", "_values")

    def __init__(
        self, values: Mapping[K, V] | None = None, steps: tuple[tuple[object, tuple[K, ...]], ...] = ()
    ) -> None:
        """Take values; `steps` is for `changed`."""
        self._values: dict[K, V] = values if steps and isinstance(values, dict) else dict(values or {})
        self._mark = object()
        self._steps = steps
        self._sorted: tuple[K, ...] | None = None

    @classmethod
    def of(cls, values: Mapping[K, V]) -> "Picture[K, V]":
        """Return the values as a picture: the very same one if they are one already."""
        return values if isinstance(values, Picture) else Picture(values)

    def changed(self, edits: Mapping[K, V | None]) -> Self:
        """Return the picture with other values under some keys, None for what is gone; itself where none is.

        A value that equals the one that is there does not replace it.
        """
        edits = {key: value for key, value in edits.items() if self._values.get(key) != value}
        if not edits:
            return self
        values = self._values.copy()
        for key, value in edits.items():
            if value is None:
                del values[key]
            else:
                values[key] = value
        after = type(self)(values, (*self._steps[1 - REMEMBERED :], (self._mark, tuple(edits))))
        if all(value is not None and key in self._values for key, value in edits.items()):
            after._sorted = self._sorted  # noqa: SLF001 - its own class's
        return after

    def since(self, before: "Picture[K, V]") -> Mapping[K, V | None]:
        """Return what is other than in a picture before, None for what is gone."""
        if before is self:
            return {}
        old, new = before._values, self._values  # noqa: SLF001 - its own class's
        keys = self._keys_since(before)
        found: dict[K, V | None] = {}
        for key in {**new, **old} if keys is None else keys:
            value, was = new.get(key), old.get(key)
            if value is not was and value != was:
                found[key] = value
        return found

    def _keys_since(self, before: "Picture[K, V]") -> dict[K, None] | None:
        found: dict[K, None] = {}
        for mark, keys in reversed(self._steps):
            found.update(dict.fromkeys(keys))
            if mark is before._mark:  # noqa: SLF001 - its own class's
                return found
        return None

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        if self._sorted is None:
            self._sorted = tuple(sorted(self._values))  # type: ignore[type-var]  # keys are sortable
        return iter(self._sorted)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Picture):
            return self is other or self._values == other._values
        return self._values == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a mapping

    def __repr__(self) -> str:
        return f"Picture({ {key: self._values[key] for key in self} })"
