"""Durations as users type them, for example `24h`."""

import re
from datetime import timedelta
from typing import Final

from meshwright.cli.errors import CommandFailed

_DURATION: Final = re.compile(r"0*([0-9]*)([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_MOST_DIGITS: Final = 9
"""Longest number of digits for which a timedelta of days can be made."""


def duration(name: str, text: str) -> timedelta:
    """Read a duration such as `30m`, `24h` or `7d`; `name` is the option, for the error.

    Raises CommandFailed for a duration of 0, a missing or unknown unit, and more than nine digits.
    """
    match = _DURATION.fullmatch(text)
    # The pattern also matches the unit alone, such as `h`.
    if match is None or not text[0].isdigit():
        raise _wrong(name, text, "must be a number followed by s, m, h or d, for example 24h")
    number, unit = match.groups()
    if not number:
        raise _wrong(name, text, "must be more than 0, for example 24h")
    if len(number) > _MOST_DIGITS:
        raise _wrong(name, text, f"must be less than {10**_MOST_DIGITS} of its unit, for example 24h")
    return timedelta(**{_UNITS[unit]: int(number)})


def _wrong(name: str, text: str, right: str) -> CommandFailed:
    return CommandFailed(f"{name} is {text[:40]!r}: {right}")
