"""Durations as Go writes them, such as 24h, 1h30m or 500ms."""

import re
from datetime import timedelta
from decimal import Decimal

_UNITS = "ms|us|µs|ns|h|m|s"
_PART = re.compile(rf"(?P<number>\d{{1,9}}(?:\.\d{{1,9}})?)(?P<unit>{_UNITS})")
_WHOLE = re.compile(rf"(?:\d{{1,9}}(?:\.\d{{1,9}})?(?:{_UNITS}))+")
_MICROSECONDS = {
    "h": Decimal(3_600_000_000),
    "m": Decimal(60_000_000),
    "s": Decimal(1_000_000),
    "ms": Decimal(1000),
    "us": Decimal(1),
    "µs": Decimal(1),
    "ns": Decimal("0.001"),
}
_LONGEST = 100 * 365 * 24 * _MICROSECONDS["h"]


def parse_duration(text: str) -> timedelta | None:
    """Read a duration of Go's time.ParseDuration without sign; None if it is none, or over 100 years."""
    if len(text) > 64 or not text.isprintable() or not _WHOLE.fullmatch(text):
        return None
    parts = (Decimal(part["number"]) * _MICROSECONDS[part["unit"]] for part in _PART.finditer(text))
    total = sum(parts, Decimal(0))
    return None if total > _LONGEST else timedelta(microseconds=int(total))
