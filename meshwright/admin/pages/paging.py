"""Paging of long answers by the parameters `limit` and `offset`; by default an answer is complete.

For example, `limit=500&offset=500` returns the second 500 rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from aiohttp import web

MOST: Final = 1_000_000
"""Highest limit and offset."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list: at most `limit` items from number `offset` (from 0); None means all further items."""

    limit: int | None
    offset: int

    def items(self, items: Iterable[Item]) -> Iterable[Item]:
        """Return the items of this page."""
        return islice(items, self.offset, None if self.limit is None else self.offset + self.limit)


def page(query: Mapping[str, str]) -> Page:
    """Return the requested part of a list. Raises web.HTTPBadRequest for an invalid number."""
    limit = _number("limit", query["limit"], 1) if query.get("limit") else None
    return Page(limit, _number("offset", query.get("offset") or "0", 0))


def _number(name: str, text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST)) and least <= int(text) <= MOST):
        words = f"{name} is {text[:40]!r}: must be a number from {least} to {MOST}"
        raise web.HTTPBadRequest(reason=words)
    return int(text)
