"""Typed access to JSON answers of Envoy's admin interface; malformed parts count as missing."""

from collections.abc import Iterator, Mapping
from typing import Any


def part(said: object, name: str) -> Mapping[str, Any]:
    """Return the mapping under a name; empty if missing."""
    found = said.get(name) if isinstance(said, Mapping) else None
    return found if isinstance(found, dict) else {}


def records(said: object, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings in the list under a name."""
    found = said.get(name) if isinstance(said, Mapping) else None
    yield from (each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()
