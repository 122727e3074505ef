"""Shapes of API answers: JSON Schemas for documenting an answer and filtering the fields.

For example, `record({"name": TEXT, "pod": maybe(TEXT)})` describes `{"name": "cart", "pod": null}`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from meshwright.admin.jsonable import Document, Json

Shape = dict[str, Json]
"""A JSON Schema, limited to the forms created by this module."""

TEXT: Final[Shape] = {"type": "string"}
WHOLE: Final[Shape] = {"type": "integer"}
NUMBER: Final[Shape] = {"type": "number"}
FLAG: Final[Shape] = {"type": "boolean"}
MOMENT: Final[Shape] = {"type": "string", "format": "date-time"}
PORT: Final[Shape] = {"type": ["integer", "string"], "description": "a number, or the name of a target port"}
ANYTHING: Final[Shape] = {}
"""Any value, of unspecified structure."""
FIELDS: Final[Shape] = {"type": "object"}
"""An object with unspecified fields."""
ERROR: Final[Shape] = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def record(fields: Mapping[str, Shape], sometimes: Mapping[str, Shape] = MappingProxyType({})) -> Shape:
    """Return the shape of an object with all of `fields` and perhaps `sometimes`; others may be added."""
    return {"type": "object", "properties": {**fields, **sometimes}, "required": list(fields)}


def listed(item: Shape) -> Shape:
    """Return the JSON Schema of a list with elements of this schema."""
    return {"type": "array", "items": item}


def named(item: Shape) -> Shape:
    """Return the JSON Schema of an object with arbitrary names, and values of this schema."""
    return {"type": "object", "additionalProperties": item}


def maybe(shape: Shape) -> Shape:
    """Return the JSON Schema of a nullable value: of this schema, or null."""
    return {"anyOf": [shape, {"type": "null"}]}


def one_of(*words: str) -> Shape:
    """Return the JSON Schema of a text with a fixed set of values."""
    return {"type": "string", "enum": list(words)}


def noted(shape: Shape, words: str) -> Shape:
    """Return a JSON Schema with these words as description."""
    return shape | {"description": words}


def fitted(shape: Shape, value: Json) -> Json:
    """Return the fields of a value that are in the shape, in the order of the shape.

    Raises KeyError for a missing field. A page may show more fields than the API promises.
    """
    match shape, value:
        # The second alternative is null: only `maybe` creates an anyOf.
        case {"anyOf": [dict(inner), _]}, _:
            return None if value is None else fitted(inner, value)
        case {"properties": dict(fields), "required": list(required)}, dict():
            return {
                # Raises KeyError for a missing required field, which is an error of the page and not of the
                # client.
                name: fitted(field, value[name])
                for name, field in fields.items()
                if isinstance(field, dict) and (name in value or name in required)
            }
        case {"additionalProperties": dict(inner)}, dict():
            return {name: fitted(inner, item) for name, item in value.items()}
        case {"items": dict(inner)}, list():
            return [fitted(inner, item) for item in value]
        case _:
            return value


def fitted_document(shape: Shape, document: Document) -> Document:
    """Return the fields of an answer that are in the shape. Raises KeyError for a missing field."""
    result = fitted(shape, document)
    if not isinstance(result, dict):
        raise TypeError("an answer is an object")
    return result
