"""A span in the sense of OpenTelemetry: a timed operation within a trace."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

Value = str | int | tuple[str, ...] | tuple[int, ...]
"""Supported types of an attribute's value."""


class Kind(enum.IntEnum):
    """Kind of a span, by the numbers of OTLP. CLIENT: a message was sent and its answer awaited."""

    INTERNAL = 1
    CLIENT = 3


@dataclass(frozen=True, slots=True)
class Span:
    """One span.

    `trace` has 16 bytes, `id` and `parent` have 8; the root of a trace has an empty `parent`. `begun` and
    `ended` are nanoseconds since the Unix epoch. `error` is the error message, None after a success.
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
