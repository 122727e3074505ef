"""Incremental parser for pages of lists.

Objects are parsed one by one, so a page is never in memory as a whole.
"""

import codecs
import json
from collections.abc import Generator, Iterator
from typing import Any, Final, TypeVar

from meshwright.kube.errors import Nonsense, Reason, shortened
from meshwright.kube.streams import LONGEST_LINE

R = TypeVar("R")

_MORE: Final = object()
_SPACE: Final = " \t\r\n"

_Reading = Generator[Any, None, R]
"""A parser step, which yields items, and _MORE to request more bytes."""


class Page:
    """Parser of one page of a list. `rest` has the fields beside `items`, complete at the end."""

    __slots__ = ("_at", "_begun", "_decoder", "_ended", "_longest", "_reading", "_text", "_utf8", "rest")

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._text, self._at = "", 0
        self._begun, self._ended = "", False
        self._longest = longest
        self._decoder = json.JSONDecoder()
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._reading = self._list()
        self.rest: dict[str, Any] = {}

    def items(self, data: bytes) -> Iterator[Any]:
        """Yield the items completed by these bytes; raise Nonsense if they are not part of a list."""
        yield from self._read(data)

    def end(self) -> Iterator[Any]:
        """Yield the items completed by the end of the bytes; raise Nonsense if the list is incomplete."""
        self._ended = True
        yield from self._read(b"")
        if not str(self.rest.get("kind", "")).endswith("List"):
            raise Nonsense(
                f"the answer is not a list, but has the kind {shortened(str(self.rest.get('kind')))!r}"
            )

    def _read(self, data: bytes) -> Iterator[Any]:
        try:
            self._text = self._text[self._at :] + self._utf8.decode(data, self._ended)
            self._at = 0
            self._begun = self._begun or self._text[:120]
            for item in self._reading:
                if item is _MORE:
                    break
                yield item
        except ValueError as error:  # includes UnicodeDecodeError
            raise Nonsense(f"the list is not JSON: {shortened(self._begun)!r}") from error
        except RecursionError as error:
            raise Nonsense("the list is JSON that is nested too deeply") from error
        if len(self._text) - self._at > self._longest:
            raise Nonsense(f"an object of a list is larger than {self._longest >> 20} MiB", Reason.TOO_LARGE)

    def _list(self) -> _Reading[None]:
        yield from self._mark("{")
        more = (yield from self._next()) != "}"
        while more:
            name = yield from self._value()
            yield from self._mark(":")
            if name == "items" and (yield from self._next()) == "[":
                yield from self._items()
            else:
                self.rest[str(name)] = yield from self._value()
            more = yield from self._goes_on("}")
        self._at += 1
        while not self._ended:
            yield _MORE
        if self._text[self._at :].strip(_SPACE):
            raise ValueError("something follows the list")

    def _items(self) -> _Reading[None]:
        yield from self._mark("[")
        more = (yield from self._next()) != "]"
        while more:
            yield (yield from self._value())
            more = yield from self._goes_on("]")
        self._at += 1

    def _goes_on(self, end: str) -> _Reading[bool]:
        """Return True and skip a comma before the next item or member, or return False at the mark `end`."""
        if (yield from self._next()) == end:
            return False
        yield from self._mark(",")
        return True

    def _mark(self, mark: str) -> _Reading[None]:
        if (yield from self._next()) != mark:
            raise ValueError(f"no {mark}")
        self._at += 1

    def _next(self) -> _Reading[str]:
        """Return the next character other than white space, without consuming the character."""
        while True:
            text = self._text
            while self._at < len(text):
                if text[self._at] not in _SPACE:
                    return text[self._at]
                self._at += 1
            if self._ended:
                raise ValueError("the list does not end")
            yield _MORE

    def _value(self) -> _Reading[Any]:
        """Return the JSON value at the present position, when complete."""
        yield from self._next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError:
                if self._ended:
                    raise
            else:
                # A number at the end of the text may continue in the next part.
                if end < len(self._text) or self._ended or self._text[end - 1] in '}]"':
                    self._at = end
                    return value
            # Parse again only with half as much text more, so that a large value costs linear time in total.
            enough = (len(self._text) - self._at) * 3 // 2
            yield _MORE
            while len(self._text) - self._at < enough and not self._ended:
                yield _MORE
