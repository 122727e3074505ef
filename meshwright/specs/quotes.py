"""Advice to put a value in quotes, given only if the quoted value would be valid."""

from collections.abc import Callable
from typing import Final

TEXT_RULE: Final = "must be text"

Fits = Callable[[str], bool]
"""Function that returns whether a text is valid for a field."""

_MOST_BITS: Final = 256
"""Maximum bits of a number that may have been intended as text."""


def never(_: str) -> bool:
    """Return False for any text: quotes around the value would not make it valid."""
    return False


def advised(expected: str, value: object, fits: Fits | None = None) -> str:
    """Return the rule for a value other than text, with the advice to use quotes if the quoted value `fits`.

    With the plain rule "must be text", any non-empty text fits.
    """
    if fits is None and expected != TEXT_RULE:
        return expected
    would_do = any(map(fits or bool, _in_quotes(value)))
    return f"{expected}; put the value in quotes" if would_do else expected


def _in_quotes(value: object) -> tuple[str, ...]:
    """Return the texts that a value without quotes may stand for; empty for a list or mapping."""
    match value:
        case bool():
            # The YAML reader turns all of these words into booleans, so the author may have written any of
            # them.
            return ("true", "yes", "on") if value else ("false", "no", "off")
        case int():
            return (str(value),) if value.bit_length() <= _MOST_BITS else ()
        case float():
            return (str(value),)
        case _:
            return ()
