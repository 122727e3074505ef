"""Answers of the server: print them as JSON, and read their lists."""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping

from meshwright.cli.errors import NegativeAnswer, UnexpectedResponse
from meshwright.cli.printing.lines import print_remarks

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


def required_records(result: object, name: str) -> list[Found]:
    """Return the objects of a list that every answer has. Raise UnexpectedResponse without the list.

    An empty list in place of a missing one would tell the user that nothing exists, for example no valid
    certificate, although the server only has another version.
    """
    return records(_require_list(result, name), name)


def _require_list(result: object, name: str) -> Found:
    if not isinstance(result, Mapping) or not isinstance(result.get(name), list):
        raise UnexpectedResponse.without(name)
    return result


def missing_replicas(result: object) -> list[str]:
    """Return a line for each server of the mesh that is missing in an answer."""
    if not isinstance(result, Mapping):
        return []
    return [
        f"incomplete: server {item.get('replica')} is missing: {item.get('reason')}"
        for item in records(result, "partial")
    ]


def with_remarks(result: dict[str, object]) -> dict[str, object]:
    """Return an answer after printing a remark for each server of the mesh that is missing in it."""
    print_remarks(*missing_replicas(result))
    return result


def of_replica(replica: str) -> Mapping[str, str]:
    """Return the query for the answer of one server, empty for that of all."""
    return {"replica": replica} if replica else {}


def texts(result: Found, name: str) -> list[str]:
    """Return the entries of a list in an answer as text, or an empty list without it."""
    value = result.get(name)
    return [str(item) for item in value] if isinstance(value, list) else []


def required_texts(result: object, name: str) -> list[str]:
    """Return the entries of a list that every answer has, as text. Raise as `required_records` does."""
    return texts(_require_list(result, name), name)
