"""Few series, however many are called: the first have series of their own, all others one together."""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Bounded(Generic[Key]):
    """Who has series of its own: it keeps them, so that no counter of Prometheus' ever goes back."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._own: set[Key] = set()

    def own(self, seen: Mapping[Key, int]) -> frozenset[Key]:
        """Return who of these has series of its own; of several new ones those that are used most."""
        room = self._most - len(self._own)
        new = [(-count, str(key), key) for key, count in seen.items() if key not in self._own]
        new.sort(key=lambda each: each[:2])
        self._own.update(key for *_, key in new[:room])
        return frozenset(self._own & seen.keys())
