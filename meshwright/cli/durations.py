"""Durations as people type them."""

import re
from datetime import timedelta
from typing import Final

from meshwright.cli.errors import CommandFailed

_DURATION: Final = re.compile(r"0*([0-9]*)([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_MOST_DIGITS: Final = 9
"""So many days are as many as a timedelta can be."""


def duration(name: str, text: str) -> timedelta:
    """Read `30m`, `24h` or `7d`; raise CommandFailed, which names the option."""
    found = _DURATION.fullmatch(text)
    if found is None or not text[0].isdigit():
        raise _wrong(name, text, "must be a number followed by s, m, h or d, for example 24h")
    number, unit = found.groups()
    if not number:
        raise _wrong(name, text, "must be more than 0, for example 24h")
    if len(number) > _MOST_DIGITS:
        raise _wrong(name, text, f"must be less than {10**_MOST_DIGITS} of its unit, for example 24h")
    return timedelta(**{_UNITS[unit]: int(number)})


def _wrong(name: str, text: str, right: str) -> CommandFailed:
    return CommandFailed(f"{name} is {text[:40]!r}: {right}")
