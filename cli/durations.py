"""Durations as people type them."""

import re
from datetime import timedelta
from typing import Final

from cli.errors import CommandFailed

_DURATION: Final = re.compile(r"([1-9][0-9]{0,8})([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(name: str, text: str) -> timedelta:
    """Read `30m`, `24h` or `7d`; raise CommandFailed, which names the option."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise CommandFailed(f"{name} is {text[:40]!r}: must be a number and s, m, h or d, such as 24h")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
