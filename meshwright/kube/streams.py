"""Parsers of the API server's bytes: lines of a watch, and whole answers."""

import json
from typing import Any, Final

from meshwright.kube.errors import Nonsense, Reason, shortened

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Maximum bytes of one event. etcd accepts 1.5 MiB by default, and JSON is larger."""


class Lines:
    """Splitter of a watch's bytes into lines."""

    __slots__ = ("_begun", "_longest", "_size")

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._begun: list[bytes] = []
        self._size = 0
        self._longest = longest

    @property
    def begun(self) -> bool:
        """Return whether the bytes so far end within a line."""
        return bool(self._begun)

    def complete(self, data: bytes) -> list[bytes]:
        """Return the lines completed by these bytes, without empty ones; raise Nonsense for one too long."""
        ended, newline, rest = data.rpartition(b"\n")
        lines: list[bytes] = []
        if newline:
            lines = [line for line in b"".join((*self._begun, ended)).split(b"\n") if line]
            self._begun, self._size = [], 0
        if rest:
            self._begun.append(rest)
            self._size += len(rest)
        if self._size > self._longest or any(len(line) > self._longest for line in lines):
            raise Nonsense(f"an event of a watch is larger than {self._longest >> 20} MiB", Reason.TOO_LARGE)
        return lines


def event(line: bytes) -> tuple[str, dict[str, Any]]:
    """Return the type and the object of a watch event, which is one line of JSON; raise Nonsense."""
    try:
        answer = json.loads(line)
    except ValueError as error:  # includes wrong UTF-8 and numbers that are too long
        raise Nonsense(f"a watch sent a line that is not JSON: {_shown(line)}") from error
    except RecursionError as error:
        raise Nonsense("a watch sent JSON that is nested too deeply") from error
    if isinstance(answer, dict) and isinstance(kind := answer.get("type"), str):
        body = answer.get("object")
        if isinstance(body, dict):
            return kind, body
    raise Nonsense(f"a watch sent a line that is not an event: {_shown(line)}")


def value(body: bytes) -> dict[str, Any]:
    """Parse an answer that must be one JSON object; raise Nonsense."""
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise Nonsense(f"the answer is not JSON: {_shown(body)}") from error
    except RecursionError as error:
        raise Nonsense("the answer is JSON that is nested too deeply") from error
    if not isinstance(answer, dict):
        raise Nonsense(f"the answer is not a JSON object: {_shown(body)}")
    return answer


def _shown(data: bytes) -> str:
    return repr(shortened(data[:120].decode("utf-8", "replace")))
