"""Quotation of a manifest's value in the text of a problem: short, on one line, and without secrets."""

import json
import re

LIMIT = 80

_SECRET = re.compile(r"secret|token|passw|credential|private|key$", re.IGNORECASE)


def show(value: object, field: str = "") -> str:
    """Quote `value` in at most 80 characters; a value in a field with a name such as `token` is hidden.

    Containers are described instead of printed, because they can be large.
    """
    if value is None:
        return "null"
    if _SECRET.search(field.rsplit(".", 1)[-1]):
        return "(hidden)"
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # Cut before quoting, because the value may be large. JSON keeps the quotation on one line.
            return cut(json.dumps(value[: LIMIT + 1], ensure_ascii=False))
        case int():
            # str() raises ValueError for an integer of more than 4300 digits.
            return (
                cut(str(value)) if value.bit_length() <= 256 else f"an integer of {value.bit_length()} bits"
            )
        case float():
            return repr(value)
        case _:
            return shape(value)


def shape(value: object) -> str:
    """Describe type and size of a value without quoting it, for example `text of 12 characters`."""
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
    """Cut `text` to 80 characters, with three dots at the end if something is left out."""
    return text if len(text) <= LIMIT else text[: LIMIT - 3] + "..."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
