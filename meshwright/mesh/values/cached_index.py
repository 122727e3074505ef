"""Values that are searched by a key again and again: their index is made once."""

from typing import Any


class CachedIndex:
    """Room for the index that a frozen dataclass with slots makes of itself when it is first searched.

    The index is no part of the value: equal values are equal whether they have made one or not.
    """

    __slots__ = ("_index",)

    def _indexed(self) -> Any:  # noqa: ANN401 - each class has an index of its own shape
        """Return the index; a subclass makes it of its fields."""
        raise NotImplementedError

    @property
    def index(self) -> Any:  # noqa: ANN401
        """The index, made when it is first asked for."""
        try:
            return self._index  # type: ignore[attr-defined]  # the slot is declared by name only
        except AttributeError:
            made = self._indexed()
            object.__setattr__(self, "_index", made)
            return made
