"""Keys in order, one put in or taken out: without sorting all of them again."""

from bisect import bisect_left
from typing import Any, TypeVar

K = TypeVar("K", bound=Any)


def with_key(keys: tuple[K, ...], key: K) -> tuple[K, ...]:
    """Return sorted keys with one more; itself where it is there."""
    place = bisect_left(keys, key)
    if place < len(keys) and keys[place] == key:
        return keys
    return (*keys[:place], key, *keys[place:])


def without_key(keys: tuple[K, ...], key: K) -> tuple[K, ...]:
    """Return sorted keys without one of them; itself where it is not there."""
    place = bisect_left(keys, key)
    if place < len(keys) and keys[place] == key:
        return keys[:place] + keys[place + 1 :]
    return keys
