"""Conversion of a JSON Schema to a structural schema, as required in a CustomResourceDefinition.

In a structural schema every value has one type. A value of several types becomes an integer or text
(`x-kubernetes-int-or-string`), or is left to its reader (`x-kubernetes-preserve-unknown-fields`). Null is
left out, because the API server drops a null outside the schema. Unknown fields of a closed mapping are left
out too: the API server refuses them for strict clients, and drops them for others.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Structural = dict[str, Any]

WHATEVER: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_TEXT: Final = "x-kubernetes-int-or-string"
_NUMBERS: Final = frozenset({"integer", "number"})
_NULL: Final = "null"

_CHECKS: Final = ("enum", "pattern", "format", "minLength", "maxLength", "minimum", "maximum", "minItems")
"""Checks of a value besides its type, with the same names in both kinds of schema."""


def structural(schema: object) -> Structural:
    """Return the structural form of a JSON schema, for a CRD.

    The form refuses no more documents, except fractions where text is allowed too.
    """
    if not isinstance(schema, Mapping):
        return {WHATEVER: True}
    return {**_description(schema), **_value([*_typed(schema)])}


def _description(schema: Mapping[str, object]) -> Structural:
    """Return the description of a field in the schema: its meaning, and its default."""
    text, default = schema.get("description"), schema.get("default")
    if text is None:
        return {}
    without = "" if default is None else f" Without it: {_word(default)}."
    return {"description": f"{text}{without}"}


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _typed(schema: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the types of a value other than null, each with the part of the schema for this type."""
    kind = schema.get("type")
    if isinstance(kind, list):
        (kind,) = (item for item in kind if item != _NULL)
    # All enums and constants of our schemas are texts.
    if "enum" in schema or "const" in schema:
        kind = "string"
    if kind == _NULL:
        return
    if isinstance(kind, str):
        yield kind, schema
    elif isinstance(choice := schema.get("anyOf"), list):
        for item in choice:
            yield from _typed(item)
    else:
        yield "", schema


def _value(typed: Sequence[tuple[str, Mapping[str, object]]]) -> Structural:
    kinds = {kind for kind, _ in typed}
    if kinds <= {"string", *_NUMBERS} and "string" in kinds and len(kinds) > 1:
        asked = [_checks(item) for _, item in typed]
        return {_INT_OR_TEXT: True, **{name: value for item in asked for name, value in item.items()}}
    if len(kinds) != 1 or "" in kinds:
        return {WHATEVER: True}
    (kind,) = kinds
    forms = [_form(kind, item) for _, item in typed]
    return {"type": kind, **(forms[0] if len(forms) == 1 else {"anyOf": forms})}


def _form(kind: str, schema: Mapping[str, object]) -> Structural:
    match kind:
        case "object":
            return _mapping(schema)
        case "array":
            return {"items": structural(schema["items"]), **_checks(schema)}
        case _:
            formats = schema.get("anyOf")
            return {**_checks(schema), **({"anyOf": formats} if formats else {})}


def _checks(schema: Mapping[str, object]) -> Structural:
    result = {name: schema[name] for name in _CHECKS if name in schema}
    if "const" in schema:
        result["enum"] = [schema["const"]]
    if isinstance(allowed := result.get("enum"), list):
        result["enum"] = [item for item in allowed if item is not None]
    return result


def _mapping(schema: Mapping[str, object]) -> Structural:
    """Return a mapping with named fields, or from text to text; an open mapping keeps unknown fields."""
    fields, others = schema.get("properties"), schema.get("additionalProperties")
    named = {name: structural(field) for name, field in fields.items()} if isinstance(fields, Mapping) else {}
    if isinstance(others, Mapping) and not named:
        return {"additionalProperties": structural(others)}
    result: Structural = {"properties": named} if named else {}
    if others is None:
        result[WHATEVER] = True
    if required := schema.get("required"):
        result["required"] = required
    if isinstance(choice := schema.get("oneOf"), list):
        result["oneOf"] = [{"required": item["required"]} for item in choice]
    return result


def merged(own: Structural, other: Structural, prefix: str) -> Structural:
    """Return `own` with the additional fields of `other`, which are not required.

    The descriptions of these fields begin with `prefix`. A field in both has the schema of `own`.
    """
    result = dict(own)
    if own.get("type") == "object" and isinstance(more := other.get("properties"), Mapping):
        named = own.get("properties")
        mine = named if isinstance(named, Mapping) else {}
        both = {
            name: merged(item, more[name], prefix) if name in more else item for name, item in mine.items()
        }
        result["properties"] = both | {
            name: _of_others(item, prefix) for name, item in more.items() if name not in mine
        }
    elif isinstance(items := own.get("items"), Mapping) and isinstance(there := other.get("items"), Mapping):
        result["items"] = merged(dict(items), dict(there), prefix)
    return result


def _of_others(schema: Structural, prefix: str) -> Structural:
    return {**schema, "description": f"{prefix} {schema.get('description', '')}".rstrip()}
