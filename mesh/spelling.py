"""What a word that is not known may have been meant to be."""

import difflib
from collections.abc import Iterable
from typing import Final

_LONGEST: Final = 60
"""How much of a word is looked at: what is longer is no slip, and costs time."""


def nearest(word: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """Return the known word that is most like it, upper case or lower, None if none is; no less than `least`.

    Of several that are as like the first in the order of words.
    """
    by_folded: dict[str, str] = {}
    for each in sorted(known):
        by_folded.setdefault(each.lower(), each)
    found = difflib.get_close_matches(word[:_LONGEST].lower(), sorted(by_folded), n=1, cutoff=least)
    return by_folded[found[0]] if found else None
