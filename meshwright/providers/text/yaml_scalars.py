"""Types of YAML scalars: as in JSON and YAML 1.2, with yes, no, on and off as booleans, as in Kubernetes.

Dates and values such as `12:30` stay text.
"""

import re

import yaml

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,99})")
_OCTAL = re.compile(r"0o[0-7]{1,99}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,99}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,4})?")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset(word for low in ("true", "yes", "on") for word in (low, low.title(), low.upper()))
_FALSE = frozenset(word for low in ("false", "no", "off") for word in (low, low.title(), low.upper()))
_TEXT_TAGS = frozenset({"tag:yaml.org,2002:str", "!"})
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("bool", "float", "int", "null"))


def resolve(event: yaml.ScalarEvent) -> object:
    """Return the typed value of a scalar; raises ValueError with a sentence for a forbidden tag."""
    if event.tag is None:
        return plain_scalar(event.value) if event.implicit[0] else event.value
    if event.tag in _TEXT_TAGS:
        return event.value
    if event.tag in _PLAIN_TAGS:
        return plain_scalar(event.value)
    raise ValueError("must not use YAML tags (!name)")


def as_written(event: yaml.ScalarEvent) -> object:
    """Return a scalar's text, or None for a null, for readers that need text in every field.

    Raises ValueError as `resolve` does.
    """
    return None if resolve(event) is None else event.value


def plain_scalar(text: str) -> object:
    """Return the typed value of a YAML scalar without quotes."""
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text) or _HEXADECIMAL.fullmatch(text):
        return int(text, 0)
    return float(text) if len(text) <= 400 and _FLOAT.fullmatch(text) else text
