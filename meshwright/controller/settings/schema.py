"""JSON schema of the settings in YAML, for the chart's values.schema.json.

The server reads a YAML value like the text of the value: a number may be `"5"`, a switch `yes`, a list `a,b`.
The schema accepts the same forms as the server, and rejects others. Details such as complete addresses are
left to the server.
"""

from collections.abc import Mapping
from typing import Any, Final

from meshwright.controller.settings.page import rows
from meshwright.controller.settings.settings import Settings

Schema = dict[str, Any]

_NUMBER: Final = r"^\s*[-+]?[0-9_]*\.?[0-9]+([eE][-+]?[0-9]+)?\s*$"
_SWITCH: Final = "^([Tt]rue|TRUE|[Ff]alse|FALSE|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF|[YyNnTtFf01])$"
_OF_TYPES: Final[Mapping[str, Schema]] = {
    "HostPort": {"type": "string", "pattern": "^.+:[0-9]{1,5}$"},
    "Place": {"type": "string", "pattern": "^([^/ ]+/[^/ ]+|https://.+)$"},
    "ConfigMapKey": {"type": "string", "pattern": "^[^/ ]+/[^/ ]+(/[^/ ]+)?$"},
    "IssuerReference": {"type": "string", "pattern": "^[^/ ]+/[^/ ]+$"},
    "Nameserver": {"type": "string", "minLength": 1},
}
"""Schemas of values that are text in YAML, by their types in the program."""


def settings_schema() -> dict[str, Schema]:
    """Return the schema of each setting by name, with the description."""
    whole = Settings.model_json_schema()
    definitions = whole["$defs"]
    meanings = {row.name: row.meaning for row in rows()}
    return {
        name: {"description": meanings[name], **_form(result, definitions)}
        for name, result in whole["properties"].items()
    }


def _form(result: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return the JSON schema of a setting's value, widened to all accepted forms in YAML."""
    if "anyOf" in result:
        return {"anyOf": [_form(item, definitions) for item in result["anyOf"]]}
    if "$ref" in result:
        return _named(result["$ref"].rpartition("/")[2], definitions)
    match result.get("type"):
        case "boolean":
            return {"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": _SWITCH}, {"enum": [0, 1]}]}
        case "integer" | "number" as kind:
            bounds = {key: result[key] for key in _BOUNDS if key in result}
            return {"anyOf": [{"type": kind, **bounds}, {"type": "string", "pattern": _NUMBER}]}
        case "array":
            return {"anyOf": [{"type": "array"}, {"type": "string"}]}
        case "object":
            return {"anyOf": [{"type": "object"}, {"type": "string"}]}
        case "null":
            return {"type": "null"}
        case _:
            return {"type": "string"}


_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def _named(name: str, definitions: Mapping[str, Schema]) -> Schema:
    if name in _OF_TYPES:
        return dict(_OF_TYPES[name])
    words = list(definitions[name]["enum"])
    return {"enum": [*words, False]} if "off" in words else {"enum": words}  # YAML 1.1 reads off as false
