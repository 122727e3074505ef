"""Fields of an external authorizer that a MeshConfig and an ExternalAuthorization have in common."""

from datetime import timedelta
from typing import Final

from meshwright.specs.fields import Fields
from meshwright.specs.values.durations import parse_duration

STAT_PREFIX: Final = "inboundExtAuthz"

_RULE: Final = "must be a duration from 1ms to 5m, for example 1s"
_TIMEOUT: Final = timedelta(seconds=1)
_LONGEST: Final = timedelta(minutes=5)


def patience(fields: Fields) -> timedelta:
    """Return the time limit of a request to the authorizer (`timeout`), 1 s by default."""
    text = fields.text("timeout", expected=_RULE)
    if not text:
        return _TIMEOUT
    duration = parse_duration(text)
    if duration is None or not timedelta(milliseconds=1) <= duration <= _LONGEST:
        fields.wrong("timeout", _RULE)
        return _TIMEOUT
    return duration
