"""Answers of the server, as they come: JSON for programs, and what they hold for who prints them."""

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
    """Print a no that has nothing else to show as JSON, too, where that is asked for."""
    try:
        yield
    except NegativeAnswer as no:
        if as_json:
            print_json({"why": str(no)})
        raise


def records(found: Found, name: str) -> list[Found]:
    """Return the objects of a list in an answer; none where there is no such list."""
    value = found.get(name)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def texts(found: Found, name: str) -> list[str]:
    """Return the entries of a list in an answer as text; none where there is no such list."""
    value = found.get(name)
    return [str(each) for each in value] if isinstance(value, list) else []
