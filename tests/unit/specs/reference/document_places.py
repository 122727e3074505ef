"""Every place of a document, so that tests can replace its value."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from meshwright.specs.reference.meanings.kinds import KINDS

DESCRIBED = pytest.mark.parametrize("described", KINDS, ids=lambda kind: kind.name, indirect=True)
"""Runs a test once for each kind of the reference (see conftest.py)."""

Place = tuple[Any, str, Any, Any]
"""A document, a place such as `spec.ports[].name`, what holds its value (a mapping or list), and by what."""


def instances(document: object) -> Iterator[Place]:
    """Yield all places of one copy of a document, which the caller may change and has to restore."""
    whole = copy.deepcopy(document)
    for place, holder, key in [*_places(whole, "")]:
        yield whole, place, holder, key


def _places(value: object, at: str) -> Iterator[tuple[str, Any, Any]]:
    match value:
        case dict():
            for name, item in value.items():
                where = f"{at}.{name}" if at else name
                yield where, value, name
                yield from _places(item, where)
        case list():
            for index, item in enumerate(value):
                yield f"{at}[]", value, index
                yield from _places(item, f"{at}[]")
        case _:
            pass
