"""Durations in Go's syntax, such as 24h, 1h30m or 500ms."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

from meshwright.specs.fields import Fields

# ms precedes m, because the first alternative counts: `_PART` would otherwise read 5ms as 5m.
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
SHORTEST_WAIT: Final = timedelta(milliseconds=1)
LONGEST_WAIT: Final = timedelta(hours=1)
"""Maximum waiting time in a proxy's configuration."""

WAIT_RULE: Final = "must be a duration from 1ms to 1h, for example 250ms or 5s"

LIFE_RULE: Final = "must be a duration from 1s to 87600h, for example 24h"

_SHORTEST_LIFE: Final = timedelta(seconds=1)
_LONGEST_LIFE: Final = timedelta(days=3650)
_LONGEST = 100 * 365 * 24 * _MICROSECONDS["h"]


def parse_duration(text: str) -> timedelta | None:
    """Parse a duration of Go's time.ParseDuration without sign; None if invalid or over 100 years."""
    if len(text) > 64 or not text.isprintable() or not _WHOLE.fullmatch(text):
        return None
    parts = (Decimal(part["number"]) * _MICROSECONDS[part["unit"]] for part in _PART.finditer(text))
    total = sum(parts, Decimal(0))
    return None if total > _LONGEST else timedelta(microseconds=int(total))


def wait(fields: Fields, name: str) -> timedelta | None:
    """Return a waiting time from 1 ms to 1 h, None if absent."""
    return bounded(fields, name, SHORTEST_WAIT, LONGEST_WAIT, WAIT_RULE)


def life(fields: Fields, name: str) -> timedelta | None:
    """Return the validity of a certificate from 1 s to ten years, None if absent."""
    return bounded(fields, name, _SHORTEST_LIFE, _LONGEST_LIFE, LIFE_RULE)


def bounded(fields: Fields, name: str, low: timedelta, high: timedelta, rule: str) -> timedelta | None:
    """Return a duration from `low` to `high`, both included, None if absent; `rule` is the error text."""
    text = fields.text(name, expected=rule)
    if text is None:
        return None
    duration = parse_duration(text)
    if duration is None or not low <= duration <= high:
        fields.wrong(name, rule)
        return None
    return duration
