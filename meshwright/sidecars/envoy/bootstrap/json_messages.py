"""Envoy messages as JSON, in protobuf's mapping (https://protobuf.dev/programming-guides/json/)."""

from collections.abc import Mapping
from datetime import timedelta

Message = Mapping[str, object]
"""A message: fields in lowerCamelCase with JSON values, for example `{"connectTimeout": "5s"}`."""


def packed(type_name: str, message: Message) -> Message:
    """Return a message for a field of the type Any."""
    return {"@type": f"type.googleapis.com/{type_name}", **message}


def duration(length: timedelta) -> str:
    """Return a google.protobuf.Duration of zero or more, with 0, 3 or 6 fractional digits.

    Example: `0.500s`.
    """
    seconds, micro = divmod(length // timedelta(microseconds=1), 1_000_000)
    if not micro:
        return f"{seconds}s"
    return f"{seconds}.{micro // 1000:03}s" if micro % 1000 == 0 else f"{seconds}.{micro:06}s"
