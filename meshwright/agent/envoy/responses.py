"""Typed access to JSON answers of Envoy's admin interface; malformed parts count as missing."""

from collections.abc import Iterator, Mapping
from typing import Any


def part(answer: object, name: str) -> Mapping[str, Any]:
    """Return the JSON object under a name in an answer; empty if missing or malformed."""
    result = answer.get(name) if isinstance(answer, Mapping) else None
    return result if isinstance(result, dict) else {}


def records(answer: object, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects in the list under a name in an answer."""
    result = answer.get(name) if isinstance(answer, Mapping) else None
    yield from (item for item in result if isinstance(item, dict)) if isinstance(result, list) else ()
