"""Typed access to fields of a page's JSON; a missing field or one of another type counts as empty."""

from meshwright.admin.jsonable import Document, Json


def said(found: Document, name: str) -> str:
    """Return a field as text, for example `80` for a number; empty for null, an object or a list."""
    value = found.get(name)
    return "" if value is None or isinstance(value, dict | list) else str(value)


def part(found: Document, name: str) -> Document:
    """Return an object field."""
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def records(found: Document, name: str) -> list[Document]:
    """Return the objects of a list field."""
    return [each for each in items(found, name) if isinstance(each, dict)]


def words(found: Document, name: str) -> list[str]:
    """Return the plain values of a list field as text."""
    return [str(each) for each in items(found, name) if not isinstance(each, dict | list)]


def number(found: Document, name: str) -> float:
    """Return a number field, 0.0 if missing."""
    value = found.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def items(found: Document, name: str) -> list[Json]:
    """Return a list field."""
    value = found.get(name)
    return value if isinstance(value, list) else []
