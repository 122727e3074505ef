"""Fields of a page's JSON by what they are; what is not there, or is something else, is empty."""

from meshwright.admin.jsonable import Document, Json


def said(found: Document, name: str) -> str:
    """Return a field as text, empty where it is null."""
    value = found.get(name)
    return "" if value is None or isinstance(value, dict | list) else str(value)


def part(found: Document, name: str) -> Document:
    """Return a field that is an object."""
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def records(found: Document, name: str) -> list[Document]:
    """Return a field that is a list of objects."""
    return [each for each in items(found, name) if isinstance(each, dict)]


def words(found: Document, name: str) -> list[str]:
    """Return a field that is a list of texts."""
    return [str(each) for each in items(found, name) if not isinstance(each, dict | list)]


def number(found: Document, name: str) -> float:
    """Return a field that is a number."""
    value = found.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def items(found: Document, name: str) -> list[Json]:
    """Return a field that is a list."""
    value = found.get(name)
    return value if isinstance(value, list) else []
