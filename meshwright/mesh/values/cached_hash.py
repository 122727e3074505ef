"""Values that stand in many keys: their hash is computed once, and is not known to other processes."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class SharedTuple(tuple[T_co, ...]):  # noqa: SLOT001 - the hash stands in its dictionary
    """A long sequence that many values have in common: whoever has it in a key pays once for its length."""

    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = super().__hash__()
            return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self),)  # hashes of text differ from process to process


class CachedHash:
    """What a frozen dataclass with slots is to be for `hashed_once`: there is room for the hash."""

    __slots__ = ("_hash",)


H = TypeVar("H", bound=CachedHash)


def hashed_once(of: type[H]) -> type[H]:
    """Have the instances of a frozen dataclass compute their hash once."""
    computed: Callable[[Any], int] = of.__hash__

    def __hash__(self: H) -> int:  # noqa: N807 - it becomes that method
        try:
            return self._hash  # type: ignore[attr-defined, no-any-return]  # the slot is declared by name only
        except AttributeError:
            found = computed(self)
            object.__setattr__(self, "_hash", found)
            return found

    of.__hash__ = __hash__  # type: ignore[assignment, method-assign]
    return of
