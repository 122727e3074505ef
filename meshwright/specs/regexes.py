r"""Check of regular expressions with RE2 itself, because Envoy rejects a whole resource for an invalid one.

Versions of Envoy differ: 1.38.3 reads expression and value as UTF-8, and 1.39.3 and 1.40 read them as bytes
(Latin-1). Some expressions are valid in only one of these encodings, for example `\x{10FFFF}`; an expression
must be valid in both.
"""

from functools import lru_cache
from typing import Final

import re2

from meshwright.specs.show import cut

MAX_LENGTH: Final = 4096
MAX_PROGRAM_SIZE: Final = 32_768
"""Maximum RE2 instructions of an expression.

Envoy rejects more than the runtime key `re2.max_program_size.error_level`, which is 100 by default; the
bootstrap configurations of proxies set the key above this bound.
"""

MAX_TOTAL_SIZE: Final = 1_000_000
"""Maximum RE2 instructions of all expressions of an object.

A short expression can need all MAX_PROGRAM_SIZE instructions. Thousands of them would occupy the reader for
minutes, and every Envoy as well.
"""

_TOO_LARGE: Final = "too large"
"""Part of RE2's error for an expression that it has given up."""

_READINGS: Final = (
    (re2.Options.Encoding.UTF8, ""),
    (re2.Options.Encoding.LATIN1, ", read byte by byte as newer Envoys do"),
)


def regex_fault(pattern: str) -> str:
    """Return the fault of a pattern, or "" for a valid one; an empty pattern is a fault."""
    return _judged(pattern)[0]


class Expressions:
    """The regular expressions of one object, with a common bound on their size."""

    __slots__ = ("_size",)

    def __init__(self) -> None:
        self._size = 0

    def fault(self, pattern: str) -> str:
        """Return the fault of the next expression, or "".

        The expression that exceeds MAX_TOTAL_SIZE has a fault; later ones are not checked.
        """
        if self._size > MAX_TOTAL_SIZE:
            return ""
        result, size = _judged(pattern)
        # The cost is added for invalid expressions too, because their check takes time as well.
        self._size += size
        if self._size > MAX_TOTAL_SIZE and not result:
            return (
                "all regular expressions of this object up to this one need more than "
                f"{MAX_TOTAL_SIZE} RE2 instructions, which is the maximum; use fewer repetitions, "
                "or split the object into several"
            )
        return result


@lru_cache(4096)
def _judged(pattern: str) -> tuple[str, int]:
    """Return the fault of a regular expression, and its size in RE2 instructions."""
    if not pattern:
        return "must not be empty; write .* to match any value", 0
    if len(pattern) > MAX_LENGTH:
        return f"must be a regular expression of at most {MAX_LENGTH} characters", 0
    try:
        encoded = pattern.encode()
    except UnicodeEncodeError:
        return "must be a regular expression of whole characters; it has half of a surrogate pair", 0
    # An ASCII expression without escapes is equal in both encodings, and not longer as bytes.
    plain = pattern.isascii() and "\\" not in pattern
    total = 0
    for encoding, reading in _READINGS[:1] if plain else _READINGS:
        fault, size = _fault(encoded, encoding)
        total += size
        if fault:
            return f"must be a regular expression (RE2{reading}): {fault}", total
    return "", total


def _fault(pattern: bytes, encoding: re2.Options.Encoding) -> tuple[str, int]:
    options = re2.Options()
    # RE2 would otherwise write users' invalid expressions to standard error.
    options.log_errors = False
    options.encoding = encoding
    try:
        size = re2.compile(pattern, options).programsize
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
        # A syntax error is found quickly; a program that is too large only after much work.
        return cut(reason), MAX_PROGRAM_SIZE if _TOO_LARGE in reason else len(pattern)
    if size > MAX_PROGRAM_SIZE:
        return (
            f"it needs {size} RE2 instructions, at most {MAX_PROGRAM_SIZE} are allowed; use fewer repetitions"
        ), size
    return "", size
