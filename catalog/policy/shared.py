"""Long sequences that many values have in common."""

from typing import Any, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Shared(tuple[T_co, ...]):  # noqa: SLOT001 - the hash stands in its dictionary
    """A tuple whose hash is computed once: whoever has it in a key does not pay for its length again."""

    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = super().__hash__()
            return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self),)  # hashes of text differ from process to process
