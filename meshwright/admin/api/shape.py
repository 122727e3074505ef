"""What answers look like: JSON Schema, by which they are documented and made alike."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from meshwright.admin.jsonable import Document, Json

Shape = dict[str, Json]
"""A JSON Schema, of those that this module makes."""

TEXT: Final[Shape] = {"type": "string"}
WHOLE: Final[Shape] = {"type": "integer"}
NUMBER: Final[Shape] = {"type": "number"}
FLAG: Final[Shape] = {"type": "boolean"}
MOMENT: Final[Shape] = {"type": "string", "format": "date-time"}
PORT: Final[Shape] = {"type": ["integer", "string"], "description": "a number, or the name of a target port"}
ANYTHING: Final[Shape] = {}
"""Whatever is there: of what the API does not say how it is set out."""
FIELDS: Final[Shape] = {"type": "object"}
"""An object of which the API does not say what is in it."""
ERROR: Final[Shape] = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def record(fields: Mapping[str, Shape], sometimes: Mapping[str, Shape] = MappingProxyType({})) -> Shape:
    """Return the shape of an object that has all of these fields, and `sometimes` those. More may come."""
    return {"type": "object", "properties": {**fields, **sometimes}, "required": list(fields)}


def listed(each: Shape) -> Shape:
    """Return the shape of a list."""
    return {"type": "array", "items": each}


def named(each: Shape) -> Shape:
    """Return the shape of an object whose names are not known beforehand."""
    return {"type": "object", "additionalProperties": each}


def maybe(shape: Shape) -> Shape:
    """Return the shape of what may be null."""
    return {"anyOf": [shape, {"type": "null"}]}


def one_of(*words: str) -> Shape:
    """Return the shape of a word of these."""
    return {"type": "string", "enum": list(words)}


def noted(shape: Shape, words: str) -> Shape:
    """Return a shape with what it means."""
    return shape | {"description": words}


def fitted(shape: Shape, value: Json) -> Json:
    """Return of a value what its shape has, in that order; raises KeyError for what it lacks.

    So a page may come to show more without the API's promising it.
    """
    match shape, value:
        case {"anyOf": [dict(inner), _]}, _:
            return None if value is None else fitted(inner, value)
        case {"properties": dict(fields), "required": list(required)}, dict():
            return {
                name: fitted(each, value[name])
                for name, each in fields.items()
                if isinstance(each, dict) and (name in value or name in required)
            }
        case {"additionalProperties": dict(inner)}, dict():
            return {name: fitted(inner, each) for name, each in value.items()}
        case {"items": dict(inner)}, list():
            return [fitted(inner, each) for each in value]
        case _:
            return value


def fitted_document(shape: Shape, document: Document) -> Document:
    """Return of an answer what its shape has; raises KeyError for what it lacks."""
    found = fitted(shape, document)
    if not isinstance(found, dict):
        raise TypeError("an answer is an object")
    return found
