"""Pages of long answers: the parameters `limit` and `offset`; without them everything is answered."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from aiohttp import web

MOST: Final = 1_000_000
"""The highest limit and offset."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page:
    """Items from number `offset` (the first is 0) on, at most `limit` of them; None: all."""

    limit: int | None
    offset: int

    def of(self, items: Iterable[Item]) -> Iterable[Item]:
        """Return the items of this page."""
        return islice(items, self.offset, None if self.limit is None else self.offset + self.limit)


def page(query: Mapping[str, str]) -> Page:
    """Return the page that is asked for; raises web.HTTPBadRequest for what is no number."""
    limit = _number("limit", query["limit"], 1) if query.get("limit") else None
    return Page(limit, _number("offset", query.get("offset") or "0", 0))


def _number(name: str, text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST)) and least <= int(text) <= MOST):
        words = f"{name} is {text[:40]!r}: it must be a number from {least} to {MOST}"
        raise web.HTTPBadRequest(reason=words)
    return int(text)
