"""Conversion of mesh values to JSON: dataclasses become mappings, other types their plainest form."""

import dataclasses
import enum
import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Document = dict[str, Json]

HANDFUL: Final = 64
"""Number of values in one piece of text; a document up to this size is encoded on the event loop."""


def jsonable(value: object) -> Json:
    """Return `value` as JSON; raise TypeError for bytes and for types with a secret or with behaviour.

    An unknown type is refused, so a new field can never show a key by accident. Fields with `repr=False` are
    left out. For example, `timedelta(minutes=1)` becomes 60.0.
    """
    match value:
        case None | bool() | int() | float():
            return value
        case enum.Enum():
            return jsonable(value.value)
        case str():
            return str(value)
        case datetime():
            # Z instead of +00:00, as Kubernetes and browsers write UTC.
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case Path():
            return str(value)
        case Mapping():
            return {str(name): jsonable(inner) for name, inner in value.items()}
        case AbstractSet():
            # Sets have no order, but the output must be deterministic.
            return [jsonable(inner) for inner in sorted(value)]
        case list() | tuple():
            return [jsonable(inner) for inner in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {
                field.name: jsonable(getattr(value, field.name))
                for field in dataclasses.fields(value)
                if field.repr
            }
        case _:
            raise TypeError(f"{type(value).__name__} is not shown")


def pieces(value: Json) -> Iterator[str]:
    """Yield the text of `json.dumps(value)` in pieces of at most HANDFUL values.

    The JSON encoder holds the interpreter lock from beginning to end, in any thread. Between two pieces,
    other threads can run. A nested value with more than HANDFUL values is split at any depth.
    """
    if is_handful(value) or not isinstance(value, dict | list):
        yield json.dumps(value)
    elif isinstance(value, dict):
        for number, (name, item) in enumerate(value.items()):
            yield f"{', ' if number else '{'}{json.dumps(name)}: "
            yield from pieces(item)
        yield "}"
    else:
        for number, item in enumerate(value):
            yield ", " if number else "["
            yield from pieces(item)
        yield "]"


def is_handful(value: Json) -> bool:
    """Return whether a value has at most HANDFUL values, which take no noticeable time to encode."""
    return _room(value, HANDFUL) >= 0


def _room(value: Json, room: int) -> int:
    """Count a document's values: return `room` minus their number, which is negative if they are too many.

    The document itself counts as one value, and each value in its mappings and lists as another one.
    """
    room -= 1
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            # The count stops early, because a document can have millions of values.
            if room < 0:
                break
            room = _room(item, room)
    return room
