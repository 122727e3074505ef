"""Values that are used in many keys: their hash is computed once, and is not pickled."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class SharedTuple(tuple[T_co, ...]):  # noqa: SLOT001 - the hash is stored in its `__dict__`
    """A long sequence that many values share; a key with it pays only once for its length."""

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
    """Base of frozen dataclasses with slots for `hashed_once`: it provides the slot for the hash."""

    __slots__ = ("_hash",)


H = TypeVar("H", bound=CachedHash)


def hashed_once(wrapped: type[H]) -> type[H]:
    """Make the instances of a frozen dataclass compute their hash only once."""
    # The generated method of the dataclass, which hashes all fields.
    computed: Callable[[Any], int] = wrapped.__hash__

    def __hash__(self: H) -> int:  # noqa: N807 - it becomes that method
        try:
            return self._hash  # type: ignore[attr-defined, no-any-return]  # the slot is declared by name only
        except AttributeError:
            number = computed(self)
            object.__setattr__(self, "_hash", number)
            return number

    wrapped.__hash__ = __hash__  # type: ignore[assignment, method-assign]
    return wrapped
