"""Typed access to fields of a page's JSON; a missing field or one of another type counts as empty."""

from meshwright.admin.jsonable import Document, Json


def field_text(result: Document, name: str) -> str:
    """Return a field as text, for example `80` for a number; empty for null, an object or a list."""
    value = result.get(name)
    return "" if value is None or isinstance(value, dict | list) else str(value)


def part(result: Document, name: str) -> Document:
    """Return the object in a field of a page's JSON; empty if missing."""
    value = result.get(name)
    return value if isinstance(value, dict) else {}


def records(result: Document, name: str) -> list[Document]:
    """Return the objects in a list field of a page's JSON; other elements are left out."""
    return [item for item in items(result, name) if isinstance(item, dict)]


def words(result: Document, name: str) -> list[str]:
    """Return the plain values (no objects or lists) in a list field of a page's JSON as text."""
    return [str(item) for item in items(result, name) if not isinstance(item, dict | list)]


def number(result: Document, name: str) -> float:
    """Return the number in a field of a page's JSON, 0.0 if missing."""
    value = result.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def items(result: Document, name: str) -> list[Json]:
    """Return the list in a field of a page's JSON; empty if missing."""
    value = result.get(name)
    return value if isinstance(value, list) else []
