"""Typed access to JSON answers of Envoy's admin interface; malformed parts count as missing."""

from collections.abc import Iterator, Mapping
from typing import Any


def part(said: object, name: str) -> Mapping[str, Any]:
    """Return the mapping under a name; empty if missing."""
    result = said.get(name) if isinstance(said, Mapping) else None
    return result if isinstance(result, dict) else {}


def records(said: object, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings in the list under a name."""
    result = said.get(name) if isinstance(said, Mapping) else None
    yield from (item for item in result if isinstance(item, dict)) if isinstance(result, list) else ()
