"""Answers of the server: print them as JSON, and read their lists."""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping

from meshwright.cli.errors import NegativeAnswer

Found = Mapping[str, object]


def print_json(value: object) -> None:
    """Print a value as JSON."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


@contextlib.contextmanager
def saying_why(*, as_json: bool) -> Iterator[None]:
    """If `as_json`, print the reason of a NegativeAnswer as JSON too, for commands without other output."""
    try:
        yield
    except NegativeAnswer as no:
        if as_json:
            print_json({"why": str(no)})
        raise


def records(result: Found, name: str) -> list[Found]:
    """Return the objects of a list in an answer, or an empty list without it."""
    value = result.get(name)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def texts(result: Found, name: str) -> list[str]:
    """Return the entries of a list in an answer as text, or an empty list without it."""
    value = result.get(name)
    return [str(item) for item in value] if isinstance(value, list) else []
