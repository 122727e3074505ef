"""A span, as OpenTelemetry has it: something that took its time, within a trace."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

Value = str | int | tuple[str, ...] | tuple[int, ...]
"""What an attribute may be here."""


class Kind(enum.IntEnum):
    """What a span is of, by the protocol's numbers. CLIENT: something was sent, and an answer waited for."""

    INTERNAL = 1
    CLIENT = 3


@dataclass(frozen=True, slots=True)
class Span:
    """One span; `trace` is of 16 bytes, `id` and `parent` of 8, the parent of a trace's root is empty.

    Times are nanoseconds of the calendar's epoch. `error` says what went wrong, None if nothing did.
    """

    trace: bytes
    id: bytes
    parent: bytes
    name: str
    kind: Kind
    begun: int
    ended: int
    attributes: Mapping[str, Value]
    error: str | None = None
