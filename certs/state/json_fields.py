"""Fields of stored JSON documents; an error names the field. A pure module."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

T = TypeVar("T")

_SHOWN: Final = 80


def json_object(content: bytes) -> Mapping[str, Any]:
    """Parse a JSON object. Raises ValueError for anything else."""
    document = json.loads(content)
    if not isinstance(document, dict):
        text = json.dumps(document)[:_SHOWN]
        raise ValueError(f"it must be a JSON object, not {text}")  # noqa: TRY004 - about the text
    return document


def json_field(document: Mapping[str, Any], name: str, parse: Callable[[Any], T]) -> T:
    """Return a field as parsed by `parse`. Raises ValueError, for example `field since is missing`."""
    if name not in document:
        raise ValueError(f"field {name} is missing")
    try:
        return parse(document[name])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"field {name} is {json.dumps(document[name])[:_SHOWN]}: {error}") from error


def parse_time(text: str) -> datetime:
    """Parse a time with its time zone, for example `2026-11-22T12:00:00+00:00`. Raises ValueError."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return at
