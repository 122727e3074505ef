"""Bytes of the API server into JSON's values: a watch's lines as they come, a list's objects one by one."""

import json
from collections.abc import Generator, Iterator
from typing import Any, Final

from kube.errors import Nonsense, Reason, shortened

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of one event. etcd takes objects of 1.5 MiB if it is not told otherwise; as JSON they are larger."""


class Lines:
    """Cuts what a watch sends into lines, in whatever pieces it comes."""

    __slots__ = ("_begun", "_longest", "_size")

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._begun: list[bytes] = []
        self._size = 0
        self._longest = longest

    @property
    def begun(self) -> bool:
        """Whether a line has begun that is not complete."""
        return bool(self._begun)

    def complete(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now, without empty ones; raise Nonsense for one too long."""
        ended, newline, rest = data.rpartition(b"\n")
        lines: list[bytes] = []
        if newline:
            lines = [line for line in b"".join((*self._begun, ended)).split(b"\n") if line]
            self._begun, self._size = [], 0
        if rest:
            self._begun.append(rest)
            self._size += len(rest)
        if self._size > self._longest or any(len(line) > self._longest for line in lines):
            raise Nonsense(f"one event has more than {self._longest >> 20} MiB", Reason.TOO_LARGE)
        return lines


def event(line: bytes) -> tuple[str, dict[str, Any]]:
    """Return what a line of a watch says: the event's type, and the object; raise Nonsense."""
    try:
        said = json.loads(line)
    except ValueError as error:  # of which wrong UTF-8 is one, and numbers that are too long
        raise Nonsense(f"a watch sent what is no JSON: {_shown(line)}") from error
    except RecursionError as error:
        raise Nonsense("a watch sent JSON that is nested too deeply") from error
    if isinstance(said, dict) and isinstance(kind := said.get("type"), str):
        body = said.get("object")
        if isinstance(body, dict):
            return kind, body
    raise Nonsense(f"a watch sent what is no event: {_shown(line)}")


def value(body: bytes) -> dict[str, Any]:
    """Return an answer that is one object; raise Nonsense."""
    try:
        said = json.loads(body)
    except ValueError as error:
        raise Nonsense(f"the answer is no JSON: {_shown(body)}") from error
    except RecursionError as error:
        raise Nonsense("the answer is JSON that is nested too deeply") from error
    if not isinstance(said, dict):
        raise Nonsense(f"the answer is no JSON object: {_shown(body)}")
    return said


class Page:
    """A page of a list, read one object at a time: a page of hundreds holds nothing up for long.

    `rest` has what is beside the items, complete when they have been read.
    """

    __slots__ = ("_decoder", "_text", "rest")

    def __init__(self, body: bytes) -> None:
        try:
            self._text = body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Nonsense(f"the list is not UTF-8: {_shown(body)}") from error
        self._decoder = json.JSONDecoder()
        self.rest: dict[str, Any] = {}

    def items(self) -> Iterator[Any]:
        """Yield the items in their order; raise Nonsense where it is no list."""
        try:
            yield from self._members()
        except (ValueError, IndexError) as error:
            raise Nonsense(f"the list is no JSON: {_shown(self._text[:400].encode())}") from error
        except RecursionError as error:
            raise Nonsense("the list is JSON that is nested too deeply") from error
        if not str(self.rest.get("kind", "")).endswith("List"):
            raise Nonsense(f"the answer is no list, but of kind {shortened(str(self.rest.get('kind')))!r}")

    def _members(self) -> Iterator[Any]:
        at = self._past(self._skip(0), "{")
        while self._text[at] != "}":
            name, at = self._decoder.raw_decode(self._text, at)
            at = self._past(self._skip(at), ":")
            if name == "items" and self._text[at] == "[":
                at = yield from self._elements(at)
            else:
                self.rest[name], at = self._decoder.raw_decode(self._text, at)
            at = self._separated(self._skip(at), "}")
        if self._skip(at + 1) != len(self._text):
            raise ValueError("something follows the list")

    def _elements(self, at: int) -> Generator[Any, None, int]:
        at = self._past(at, "[")
        while self._text[at] != "]":
            each, at = self._decoder.raw_decode(self._text, at)
            yield each
            at = self._separated(self._skip(at), "]")
        return at + 1

    def _separated(self, at: int, end: str) -> int:
        """Return where the next one begins, or `end` stands; raise ValueError for anything else."""
        if self._text[at] == end:
            return at
        if self._text[after := self._past(at, ",")] == end:
            raise ValueError("nothing follows a comma")
        return after

    def _past(self, at: int, mark: str) -> int:
        if self._text[at] != mark:
            raise ValueError(f"no {mark}")
        return self._skip(at + 1)

    def _skip(self, at: int) -> int:
        text = self._text
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        return at


def _shown(data: bytes) -> str:
    return repr(shortened(data[:120].decode("utf-8", "replace")))
