"""Whether a value that is no text is to be put in quotes: said only where that leads to something right."""

from collections.abc import Callable
from typing import Final

TEXT_RULE: Final = "must be text"

Fits = Callable[[str], bool]
"""Whether a text is one that may stand somewhere."""

_MOST_BITS: Final = 256
"""Of a number that somebody may have meant as text."""


def never(_: str) -> bool:
    """Say of what is no text that quotes would not mend it."""
    return False


def advised(expected: str, value: object, fits: Fits | None = None) -> str:
    """Return what is said of a value that is no text, with the advice where it `fits` in quotes.

    Any text does where nothing is said but that it must be one.
    """
    if fits is None and expected != TEXT_RULE:
        return expected
    would_do = any(map(fits or bool, _in_quotes(value)))
    return f"{expected}; put the value in quotes" if would_do else expected


def _in_quotes(value: object) -> tuple[str, ...]:
    """Return the texts that somebody may have meant by a value without quotes; none of a list or mapping."""
    match value:
        case bool():
            return ("true", "yes", "on") if value else ("false", "no", "off")
        case int():
            return (str(value),) if value.bit_length() <= _MOST_BITS else ()
        case float():
            return (str(value),)
        case _:
            return ()
