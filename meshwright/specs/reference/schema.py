"""JSON Schemas (draft 2020-12) for editors: of one kind, and of all documents in a mesh's directory.

A schema refuses less than the reader, because a schema cannot express relations between fields or objects.
For an optional field null counts as absent.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from meshwright.mesh.kinds import UDP_ROUTE, Kind
from meshwright.specs.kinds import KNOWN_GROUPS, kinds_of
from meshwright.specs.reference.meaning import Form
from meshwright.specs.reference.recording import (
    Asked,
    Choice,
    Flag,
    Items,
    Pairs,
    Percent,
    Ports,
    Section,
    Text,
    Texts,
    WholeNumber,
)
from meshwright.specs.reference.shapes import DescribedKind, Field, MappingShape, Shape

Schema = dict[str, object]

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_PORT: Final[Mapping[str, object]] = {"type": "integer", "minimum": 1, "maximum": 65535}


def of_kind(described: DescribedKind) -> Schema:
    """Return the JSON schema of a kind's documents."""
    return {"$schema": _DRAFT, **_of_kind(described)}


def of_shape(shape: Shape) -> Schema:
    """Return the JSON schema of the documents of some API versions, without apiVersion and kind."""
    return _mapping(shape.body)


def reference(described: DescribedKind, file: str) -> Schema:
    """Return a JSON schema of one kind that refers to the schema file with all kinds."""
    return {"$schema": _DRAFT, "title": described.kind.full, "$ref": f"{file}#/$defs/{described.kind}"}


def of_all(described: Sequence[DescribedKind]) -> Schema:
    """Return the schema of any document.

    Known kinds have their schemas; an unknown kind of a known group is an error.
    """
    return {
        "$schema": _DRAFT,
        "title": "Manifests of a mesh",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "allOf": [
            *(_if_kind(described_kind.kind) for described_kind in described),
            *map(_of_group, KNOWN_GROUPS),
            {
                "if": {"properties": {"kind": {"const": "List"}}, "required": ["kind"]},
                "then": {"properties": {"items": {"type": "array", "items": {"$ref": "#"}}}},
            },
        ],
        "$defs": {str(described_kind.kind): _of_kind(described_kind) for described_kind in described},
    }


def _if_kind(kind: Kind) -> Schema:
    condition = {"kind": {"const": kind.name}, "apiVersion": {"pattern": _group_pattern(kind.group)}}
    return {
        "if": {"properties": condition, "required": ["kind", "apiVersion"]},
        "then": {"$ref": f"#/$defs/{kind}"},
    }


def _of_group(group: str) -> Schema:
    # The reader refuses every UDPRoute, so editors must not propose this kind.
    names = [name for name in kinds_of(group) if Kind(name, group) != UDP_ROUTE]
    known = [*names, *(f"{name}List" for name in names), *(("List",) if not group else ())]
    return {
        "if": {"properties": {"apiVersion": {"pattern": _group_pattern(group)}}, "required": ["apiVersion"]},
        "then": {"properties": {"kind": {"enum": known}}},
    }


def _group_pattern(group: str) -> str:
    """Return the regular expression of a group's apiVersions, only with escapes that JavaScript has too."""
    escaped = group.replace(".", r"\.")
    return f"^{escaped}/[^/]*$" if group else "^[^/]*$"


def _of_kind(described: DescribedKind) -> Schema:
    head: Schema = {
        "title": described.kind.full,
        "description": described.purpose,
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
    }
    named: Schema = {
        "apiVersion": {"enum": list(described.api_versions)},
        "kind": {"const": described.kind.name},
    }
    if len(described.shapes) == 1:
        (shape,) = described.shapes
        body = _mapping(shape.body)
        properties = {**named, **_properties(body)}
        return {
            **head,
            **body,
            "required": ["apiVersion", "kind", *_required(shape.body)],
            "properties": properties,
        }
    return {**head, "properties": named, "allOf": [_if_version(item) for item in described.shapes]}


def _if_version(shape: Shape) -> Schema:
    body = _mapping(shape.body)
    condition = {"apiVersion": {"enum": list(shape.api_versions)}}
    # `additionalProperties: false` knows only the names beside it, so the names of the head are repeated.
    return {
        "if": {"properties": condition, "required": ["apiVersion"]},
        "then": {**body, "properties": {"apiVersion": True, "kind": True, **_properties(body)}},
    }


def _properties(schema: Schema) -> Mapping[str, object]:
    result = schema.get("properties", {})
    return result if isinstance(result, Mapping) else {}


def _mapping(mapped: MappingShape) -> Schema:
    """Return the JSON schema of a mapping; of two alternative fields exactly one must be present."""
    choices = [
        {"oneOf": [_presence_schema(field.name), _presence_schema(field.meaning.instead)]}
        for field in mapped.fields
        if field.meaning.instead
    ]
    required = _required(mapped)
    properties = dict.fromkeys(mapped.untouched, True) | {
        field.name: _field(field) for field in mapped.fields
    }
    return {
        "type": "object",
        **({"required": required} if required else {}),
        **(choices[0] if choices else {}),
        **({"properties": properties} if properties else {}),
        **({"additionalProperties": {"type": ["string", "null"]}} if mapped.pairs else {}),
        **({"additionalProperties": False} if mapped.closed else {}),
    }


def _presence_schema(name: str) -> Schema:
    """Return the JSON schema for "this field is present", in which null counts as absent."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


def _required(mapped: MappingShape) -> list[str]:
    return [field.name for field in mapped.fields if field.required and not field.meaning.instead]


def _field(field: Field) -> Schema:
    described: Schema = {"description": field.meaning.text}
    if field.default is not None:
        described["default"] = field.default
    if isinstance(field.example, str | int):
        described["examples"] = [field.example]
    alternatives = _alternatives(field)
    needed = field.required and not field.meaning.instead
    if not needed and all(alternatives):
        alternatives = _or_null(alternatives)
    return {**described, **(alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives})}


def _or_null(alternatives: list[Schema]) -> list[Schema]:
    """Return the alternatives plus null, within the type itself if there is only one alternative."""
    only = alternatives[0]
    if len(alternatives) > 1 or "anyOf" in only:
        return [*alternatives, {"type": "null"}]
    if isinstance(allowed := only.get("enum"), list):
        return [{**only, "enum": [*allowed, None]}]
    return [{**only, "type": [only["type"], "null"]}]


def _alternatives(field: Field) -> list[Schema]:
    form, raw = field.meaning.form, field.meaning.raw
    if not field.types:
        return [_formed(raw or form)]
    result = [_schema(item, field) for item in field.types]
    text = any(isinstance(item, Text | Choice | Items | Texts) for item in field.types)
    return result if text or form is None else [*result, _formed(form)]


def _schema(field_type: Asked, field: Field) -> Schema:
    form = field.meaning.form
    filled: Schema = {"minItems": 1} if field.not_empty else {}
    match field_type:
        case Text():
            return _text(form, not_empty=field.not_empty)
        case Choice(allowed=allowed):
            return {"enum": list(allowed)}
        case Flag():
            return {"type": "boolean"}
        case WholeNumber(low=low, high=high):
            return {"type": "integer", "minimum": low, "maximum": high}
        case Percent():
            return {"type": "number", "minimum": 0, "maximum": 100}
        case Section() | Pairs():
            return _mapping(field.inside)
        case Texts():
            return {"type": "array", "items": _text(form, not_empty=True), **filled}
        case Ports():
            return {"type": "array", "items": dict(_PORT)}
        case Items():
            items = _formed(form) if form is not None else _mapping(field.items)
            return {"type": "array", "items": items, **filled}
        case _:
            return {}


def _text(form: Form | None, *, not_empty: bool) -> Schema:
    if form is None:
        return {"type": "string", **({"minLength": 1} if not_empty else {})}
    schema = _formed(form)
    if not_empty:
        return schema
    if isinstance(allowed := schema.get("enum"), list):
        return {"enum": [*allowed, ""]}
    # The reader accepts an empty text here, which the pattern would refuse.
    return {"anyOf": [{"type": "string", "maxLength": 0}, schema]}


def _formed(form: Form | None) -> Schema:
    return {} if form is None else dict(form.schema)
