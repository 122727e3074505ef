"""Matches that cover others: a request that fits the covered match fits both. Expressions compare as text."""

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.lint.budget import Budget
from meshwright.mesh.policies.smi import HeaderMatch, HTTPMatch

_ANY = (None, ".*")
"""Path expressions for every path."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A match without its name: two matches of one shape fit the same requests. `path` None is every path."""

    path: str | None
    methods: frozenset[str]
    headers: frozenset[HeaderMatch]

    @classmethod
    def from_match(cls, match: HTTPMatch) -> "Shape":
        """Return the shape of an HTTP match."""
        path = None if match.path_regex in _ANY else match.path_regex
        return cls(path, frozenset(match.methods), frozenset(match.headers))

    def covers(self, other: "Shape") -> bool:
        """Return whether every request fitting `other` also fits this shape."""
        return (
            self.path in (None, other.path)
            and (not self.methods or (bool(other.methods) and other.methods <= self.methods))
            and self.headers <= other.headers
        )


class MatchIndex:
    """Index of named matches for the search of a covering match.

    Only a match with the same path or with every path can cover a match. Therefore the index is by path and
    keeps the first match of each shape, so matches of different paths are never compared.
    """

    def __init__(self, named: Iterable[tuple[str, HTTPMatch]]) -> None:
        self._by_path: dict[str | None, dict[Shape, tuple[int, str]]] = {}
        for place, (name, match) in enumerate(named):
            shape = Shape.from_match(match)
            self._by_path.setdefault(shape.path, {}).setdefault(shape, (place, name))

    def first(self, match: HTTPMatch, budget: Budget, *, wider: bool = False) -> str | None:
        """Return the name of the first match covering `match`, or None.

        With `wider` a match of the same shape does not count. Each comparison takes a step of the budget.
        """
        shape = Shape.from_match(match)
        paths = (None,) if shape.path is None else (None, shape.path)
        result = [
            outcome
            for path in paths
            if (outcome := self._first_at(path, shape, budget, wider=wider)) is not None
        ]
        return min(result)[1] if result else None

    def _first_at(
        self, path: str | None, shape: Shape, budget: Budget, *, wider: bool
    ) -> tuple[int, str] | None:
        for other, place in self._by_path.get(path, {}).items():
            budget.spend()
            if other.covers(shape) and not (wider and other == shape):
                return place
        return None
