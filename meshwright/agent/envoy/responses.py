"""Parts of what Envoy's admin interface answers in JSON; what has another form is nothing."""

from collections.abc import Iterator, Mapping
from typing import Any


def part(said: object, name: str) -> Mapping[str, Any]:
    """Return the mapping that stands under a name; an empty one where none does."""
    found = said.get(name) if isinstance(said, Mapping) else None
    return found if isinstance(found, dict) else {}


def records(said: object, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings of the list that stands under a name."""
    found = said.get(name) if isinstance(said, Mapping) else None
    yield from (each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()
