"""Mesh values as JSON: dataclasses become mappings, everything else its plainest form."""

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
"""Values that are written at a time: a page that is no longer is written on the event loop."""


def jsonable(value: object) -> Json:
    """Return `value` as JSON; raise TypeError for bytes and for types that hold a secret or behaviour.

    Refusing what it does not know keeps a key from being shown because somebody added a field.
    """
    match value:
        case None | bool() | int() | float():
            return value
        case enum.Enum():
            return jsonable(value.value)
        case str():
            return str(value)
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case Path():
            return str(value)
        case Mapping():
            return {str(name): jsonable(inner) for name, inner in value.items()}
        case AbstractSet():
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
    """Yield a value's text, which is what `json.dumps` makes of it, a HANDFUL of values at a time.

    The encoder keeps the interpreter to itself from end to end, in whatever thread: between two pieces
    others have a turn. What has more in it is gone into, however deep it lies.
    """
    if is_handful(value) or not isinstance(value, dict | list):
        yield json.dumps(value)
    elif isinstance(value, dict):
        for number, (name, each) in enumerate(value.items()):
            yield f"{', ' if number else '{'}{json.dumps(name)}: "
            yield from pieces(each)
        yield "}"
    else:
        for number, each in enumerate(value):
            yield ", " if number else "["
            yield from pieces(each)
        yield "]"


def is_handful(value: Json) -> bool:
    """Say whether a value is written in no time: there is no more than a HANDFUL in it."""
    return _room(value, HANDFUL) >= 0


def _room(value: Json, room: int) -> int:
    """Return how many values would have room beside this one and all in it; less than none: it has not."""
    room -= 1
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            if room < 0:
                break
            room = _room(each, room)
    return room
