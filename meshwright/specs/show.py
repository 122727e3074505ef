"""How a value from a manifest is quoted in a problem: short, on one line, and never a secret."""

import json
import re

LIMIT = 80

_SECRET = re.compile(r"secret|token|passw|credential|private|key$", re.IGNORECASE)


def show(value: object, field: str = "") -> str:
    """Quote `value` in at most 80 characters; what stands in a field that sounds secret is hidden.

    Containers are described, not printed: their content is not what is wrong, and may be large.
    """
    if value is None:
        return "null"
    if _SECRET.search(field.rsplit(".", 1)[-1]):
        return "(hidden)"
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return cut(json.dumps(value[: LIMIT + 1], ensure_ascii=False))
        case int():
            return (
                cut(str(value)) if value.bit_length() <= 256 else f"an integer of {value.bit_length()} bits"
            )
        case float():
            return repr(value)
        case _:
            return shape(value)


def shape(value: object) -> str:
    """Describe what kind of value it is and how large, and quote none of it: `text of 12 characters`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return f"text of {_count(len(value), 'character')}"
        case int() | float():
            return "a number"
        case dict():
            return f"a mapping of {_count(len(value), 'key')}"
        case list() | tuple():
            return f"a list of {_count(len(value), 'item')}"
        case _:
            return f"a value of type {type(value).__name__}"


def cut(text: str) -> str:
    """Cut `text` to 80 characters, the last three dots where something is missing."""
    return text if len(text) <= LIMIT else text[: LIMIT - 3] + "..."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
