"""What a word that is not known may have been meant to be."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from meshwright.mesh.names import LONGEST_NAME

LIKE: Final = 0.6
"""How alike two words are at the least, of 1, where one may be meant by the other."""

COMPARED: Final = 200
"""With so many words at the most a word is compared: somebody else waits for the event loop."""


def nearest(word: str, known: Iterable[str], least: float = LIKE) -> str | None:
    """Return the known word that is most like it, as `alike` has it, None if none is."""
    return next(iter(alike(word, known, 1, least)), None)


def alike(word: str, known: Iterable[str], most: int, least: float = LIKE) -> tuple[str, ...]:
    """Return the known words that are like it, upper case or lower, no less than `least`; the likest first.

    Of several that are as like the last in the order of words comes first. Among more than COMPARED those
    are looked at that begin most like it.
    """
    asked = word[:LONGEST_NAME].lower()  # what is longer is no slip, and costs time
    by_folded = {each.lower(): each for each in sorted(known, reverse=True)}
    near = _beginning_like(asked, sorted(by_folded))
    return tuple(by_folded[each] for each in get_close_matches(asked, near, most, least))


def _beginning_like(word: str, known: Sequence[str]) -> Sequence[str]:
    """Return the COMPARED of sorted words between which a word would stand."""
    first = bisect_left(known, word) - COMPARED // 2
    return known[max(0, min(first, len(known) - COMPARED)) :][:COMPARED]
