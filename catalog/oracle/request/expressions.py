"""Regular expressions of users, judged like in Envoy: with RE2, on bytes, over the whole value.

Envoy treats the bytes of paths and header values as Latin-1 (since 1.36.10, 1.37.6, 1.38.4 and 1.39.1; before
as UTF-8, which differs for bytes outside ASCII). So `.` is one byte, and `é` in an expression, two bytes
in UTF-8, matches these two bytes.
"""

import re
from functools import lru_cache
from typing import Final, Protocol

import re2

_KEPT: Final = 512
_OPTIONS: Final = re2.Options()
# Each byte is one character, because Envoy matches bytes, and a path may have any.
_OPTIONS.encoding = re2.Options.Encoding.LATIN1
# RE2 would print each rejected expression to standard error.
_OPTIONS.log_errors = False
_SPECIAL: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")
_ESCAPED: Final = re.compile(r"\\([^A-Za-z0-9])")
_LITERAL: Final = re.compile(rf"(?:{_ESCAPED.pattern}|[^\\.+*?()|\[\]{{}}^$])*")


class _CompiledExpression(Protocol):
    """Interface of google-re2's expressions, which have no types."""

    def fullmatch(self, text: bytes) -> object | None:
        """Return a match, or `None`."""

    def possiblematchrange(self, maxlen: int) -> tuple[bytes, bytes]:
        """Return the bounds of matching texts, up to `maxlen` bytes long; raise without bounds."""


def fits_in_full(expression: str, value: bytes) -> bool:
    """Return whether an expression matches a whole value; False for an expression that RE2 rejects."""
    compiled = _compiled(expression)
    return compiled is not None and compiled.fullmatch(value) is not None


def fits_no_path(expression: str) -> bool:
    """Return whether an expression certainly never matches a text with a leading slash."""
    compiled = _compile(expression)  # not cached: an expression takes 4 KiB, and is checked once
    if compiled is None:
        return True
    try:
        least, greatest = compiled.possiblematchrange(8)
    except re2.error:  # no bounds: a match may begin with anything
        return False
    return bool(greatest < b"/" or least >= b"0")


def literal(text: str) -> str:
    """Return a regular expression for exactly this text."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def text_of(expression: str) -> str | None:
    """Return the text matched by a literal expression, or `None` for any other expression."""
    return _ESCAPED.sub(r"\1", expression) if _LITERAL.fullmatch(expression) else None


def _compile(expression: str) -> _CompiledExpression | None:
    try:
        compiled_expression: _CompiledExpression = re2.compile(expression.encode(), _OPTIONS)
    except re2.error:
        return None
    return compiled_expression


_compiled: Final = lru_cache(maxsize=_KEPT)(_compile)
