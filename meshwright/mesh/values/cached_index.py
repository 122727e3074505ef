"""Base of values that are often searched by a key, with an index built only once."""

from typing import Any


class CachedIndex:
    """Base of frozen dataclasses with slots that build an index of themselves at the first search.

    The index is not part of the value: equal values are equal whether they have built one or not.
    """

    __slots__ = ("_index",)

    def _indexed(self) -> Any:  # noqa: ANN401 - each class has an index of its own shape
        """Return the index, built by a subclass from its fields."""
        raise NotImplementedError

    @property
    def index(self) -> Any:  # noqa: ANN401
        """The index, built at the first use."""
        try:
            return self._index  # type: ignore[attr-defined]  # the slot is declared by name only
        except AttributeError:
            made = self._indexed()
            object.__setattr__(self, "_index", made)
            return made
