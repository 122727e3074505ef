"""Suggestions of known words for a misspelt one."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from meshwright.mesh.names import LONGEST_NAME

LIKE: Final = 0.6
"""Smallest similarity, of at most 1, at which a word is suggested."""

COMPARED: Final = 200
"""Limit of compared words: the comparison blocks the event loop."""


def nearest(word: str, known: Iterable[str], least: float = LIKE) -> str | None:
    """Return the known word that is most similar, or None if none is similar enough (see `alike`).

    For example, `cart` for `crat`.
    """
    return next(iter(alike(word, known, 1, least)), None)


def alike(word: str, known: Iterable[str], most: int, least: float = LIKE) -> tuple[str, ...]:
    """Return at most `most` known words with a similarity of `least`, ignoring case; the best first.

    Words of equal similarity are in alphabetical order. Of more than COMPARED words only the ones with the
    most similar beginning are compared.
    """
    asked = word[:LONGEST_NAME].lower()  # longer texts are not typing errors, and cost time
    # Backwards, so of names that differ in case only the first in order remains.
    by_folded = {item.lower(): item for item in sorted(known, reverse=True)}
    near = _beginning_like(asked, sorted(by_folded))
    return tuple(by_folded[match] for match in get_close_matches(asked, near, most, least))


def did_you_mean(word: str, known: Iterable[str], most: int = 1) -> str:
    """Return a clause with similar words, for example ` (did you mean cart?)`; empty if none is similar."""
    near = alike(word, known, most)
    return f" (did you mean {', '.join(near)}?)" if near else ""


def _beginning_like(word: str, known: Sequence[str]) -> Sequence[str]:
    """Return COMPARED of the sorted known words, around the place for a word."""
    first = bisect_left(known, word) - COMPARED // 2
    return known[max(0, min(first, len(known) - COMPARED)) :][:COMPARED]
