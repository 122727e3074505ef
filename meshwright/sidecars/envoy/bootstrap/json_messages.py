"""Messages of Envoy as JSON, in protobuf's spelling: what all of them have in common.

See https://protobuf.dev/programming-guides/json/.
"""

from collections.abc import Mapping
from datetime import timedelta

Message = Mapping[str, object]
"""A message: fields in lowerCamelCase, of JSON's own kinds; what is left out has its default."""


def packed(type_name: str, message: Message) -> Message:
    """Return a message as it stands in a field of the type Any."""
    return {"@type": f"type.googleapis.com/{type_name}", **message}


def duration(length: timedelta) -> str:
    """Return a google.protobuf.Duration of zero or more: seconds with 0, 3 or 6 fractional digits."""
    seconds, micro = divmod(length // timedelta(microseconds=1), 1_000_000)
    if not micro:
        return f"{seconds}s"
    return f"{seconds}.{micro // 1000:03}s" if micro % 1000 == 0 else f"{seconds}.{micro:06}s"
