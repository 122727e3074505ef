"""Faults of an Envoy message, each with the path to the faulty value."""

from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import Message

VALUE_LIMIT: Final = 80

Way = tuple[Any, str, str | int | bool | None] | None
"""The way to a value, last step first: (way to the parent, field, element); None at the message judged."""


@dataclass(frozen=True, slots=True)
class Step:
    """A field, and one of its elements: an index of a list, a key of a map, None for a single value."""

    field: str
    element: str | int | bool | None = None

    def __str__(self) -> str:
        return self.field if self.element is None else f"{self.field}[{self.element}]"


@dataclass(frozen=True, slots=True)
class Fault:
    """One value for which Envoy would refuse the message.

    `steps` lead from the checked message to the value; an Any on the way has no step. `expected` is the
    rule, for example `must be an IP address`. `value` is the wrong value, at most 80 characters,
    and never a secret.
    """

    steps: tuple[Step, ...]
    expected: str
    value: str = ""

    @property
    def path(self) -> str:
        """Return the path to the faulty value, for example `policies[shop/x].permissions[0].header.name`."""
        return ".".join(map(str, self.steps))

    def __str__(self) -> str:
        place = f"{self.path}: " if self.steps else ""
        return f"{place}{self.expected}{f', not {self.value}' if self.value else ''}"


def fault(way: Way, expected: str, value: object = None, *, hidden: bool = False) -> Fault:
    """Return the fault of the value at the end of a way; with `value` None the value is not shown."""
    steps = []
    while way is not None:
        way, field, element = way
        steps.append(Step(field, element))
    return Fault(tuple(reversed(steps)), expected, "(hidden)" if hidden else _shown(value))


def _shown(value: object) -> str:
    match value:
        case None | Message():
            return ""
        case bytes():
            return f"{len(value)} bytes"
        case str() if len(value) > VALUE_LIMIT - 2:
            return ascii(value[: VALUE_LIMIT - 5])[: VALUE_LIMIT - 4] + "...'"
        case _:
            return repr(value)[:VALUE_LIMIT]
