"""Users' expressions, judged as Envoy judges them: by RE2, on bytes, in full.

Envoy takes the bytes of paths and header values for Latin-1 (since 1.36.10, 1.37.6, 1.38.4 and 1.39.1; before
that for UTF-8, which differs where they are not ASCII): `.` is one byte, and `é` in an expression, which is
two bytes in UTF-8, fits those two.
"""

import re
from functools import lru_cache
from typing import Final, Protocol

import re2

_KEPT: Final = 512
_OPTIONS: Final = re2.Options()
_OPTIONS.encoding = re2.Options.Encoding.LATIN1
_OPTIONS.log_errors = False
_SPECIAL: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")
_ESCAPED: Final = re.compile(r"\\([^A-Za-z0-9])")
_LITERAL: Final = re.compile(rf"(?:{_ESCAPED.pattern}|[^\\.+*?()|\[\]{{}}^$])*")


class _CompiledExpression(Protocol):
    """An expression of google-re2, which has no types of its own."""

    def fullmatch(self, text: bytes) -> object | None:
        """Return a match, None where there is none."""

    def possiblematchrange(self, maxlen: int) -> tuple[bytes, bytes]:
        """Return the bounds of what may fit, as many bytes long; raise where there are none."""


def fits_in_full(expression: str, value: bytes) -> bool:
    """Say whether an expression fits a value in full; one that RE2 does not take fits nothing."""
    compiled = _compiled(expression)
    return compiled is not None and compiled.fullmatch(value) is not None


def fits_no_path(expression: str) -> bool:
    """Say whether an expression surely fits nothing that begins with a slash."""
    compiled = _compile(expression)  # not kept: it takes 4 KiB, and of each this is asked once
    if compiled is None:
        return True
    try:
        least, greatest = compiled.possiblematchrange(8)
    except re2.error:  # it may begin with anything
        return False
    return bool(greatest < b"/" or least >= b"0")


def literal(text: str) -> str:
    """Return an expression that fits this text and nothing else."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def text_of(expression: str) -> str | None:
    """Return the one text that an expression fits, None unless it is written as one."""
    return _ESCAPED.sub(r"\1", expression) if _LITERAL.fullmatch(expression) else None


def _compile(expression: str) -> _CompiledExpression | None:
    try:
        found: _CompiledExpression = re2.compile(expression.encode(), _OPTIONS)
    except re2.error:
        return None
    return found


_compiled: Final = lru_cache(maxsize=_KEPT)(_compile)
