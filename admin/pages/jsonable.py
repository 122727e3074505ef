"""Mesh values as JSON: dataclasses become mappings, everything else its plainest form."""

import dataclasses
import enum
import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from pathlib import Path

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Document = dict[str, Json]


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


def pieces(document: Document) -> Iterator[str]:
    """Yield a document's text, which is what `json.dumps` makes of it, entry by entry.

    The encoder keeps the interpreter to itself from end to end, in whatever thread: between two pieces
    others have a turn.
    """
    for number, (name, value) in enumerate(document.items()):
        yield f"{', ' if number else '{'}{json.dumps(name)}: "
        yield from _items(value) if isinstance(value, list | dict) and value else (json.dumps(value),)
    yield "}" if document else "{}"


def _items(value: list[Json] | dict[str, Json]) -> Iterator[str]:
    if isinstance(value, list):
        yield from (f"{', ' if number else '['}{json.dumps(each)}" for number, each in enumerate(value))
        yield "]"
        return
    for number, (name, each) in enumerate(value.items()):
        yield f"{', ' if number else '{'}{json.dumps(name)}: {json.dumps(each)}"
    yield "}"
