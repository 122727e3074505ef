r"""Whether an expression is one to Envoy: judged by RE2 itself, for Envoy refuses a whole resource for one.

Envoys of different versions read differently: 1.38.3 takes expression and value for UTF-8, 1.39.3 and 1.40
take them for bytes (Latin-1). Some expressions are right in one reading alone, such as `\x{10FFFF}`: both
must be.
"""

from functools import lru_cache
from typing import Final

import re2

from meshwright.specs.show import cut

MAX_LENGTH: Final = 4096
MAX_PROGRAM_SIZE: Final = 32_768
"""How many instructions RE2 may need for an expression.

Envoy refuses more than the runtime key `re2.max_program_size.error_level` allows, by default 100: the
bootstraps of proxies set it above this bound.
"""

MAX_TOTAL_SIZE: Final = 1_000_000
"""How many instructions RE2 may need for all expressions of one object.

A short expression may need all MAX_PROGRAM_SIZE: thousands of these would keep whoever reads the object busy
for minutes, and each Envoy as well.
"""

_TOO_LARGE: Final = "too large"
"""What RE2 says of an expression that it gave up."""

_READINGS: Final = (
    (re2.Options.Encoding.UTF8, ""),
    (re2.Options.Encoding.LATIN1, ", read byte by byte as newer Envoys do"),
)


def regex_fault(pattern: str) -> str:
    """Return what is wrong with `pattern`, or an empty string if it is right; an empty one is not."""
    return _judged(pattern)[0]


class Expressions:
    """The expressions of one object, as far as they were judged: together they are bounded as well."""

    __slots__ = ("_size",)

    def __init__(self) -> None:
        self._size = 0

    def fault(self, pattern: str) -> str:
        """Return what is wrong with the next expression, or an empty string.

        The one by which all come to more than MAX_TOTAL_SIZE is at fault; those after it are not looked at.
        """
        if self._size > MAX_TOTAL_SIZE:
            return ""
        found, size = _judged(pattern)
        self._size += size
        if self._size > MAX_TOTAL_SIZE and not found:
            return (
                "all regular expressions of this object up to this one need more than "
                f"{MAX_TOTAL_SIZE} RE2 instructions, which is the maximum; use fewer repetitions, "
                "or split the object into several"
            )
        return found


@lru_cache(4096)
def _judged(pattern: str) -> tuple[str, int]:
    """Return what is wrong with an expression, and how many instructions it took to know that."""
    if not pattern:
        return "must not be empty; write .* to match any value", 0
    if len(pattern) > MAX_LENGTH:
        return f"must be a regular expression of at most {MAX_LENGTH} characters", 0
    try:
        encoded = pattern.encode()
    except UnicodeEncodeError:
        return "must be a regular expression of whole characters; it has half of a surrogate pair", 0
    # Without a character or an escape beyond ASCII both read the same, and bytes need no longer a program.
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
    options.log_errors = False
    options.encoding = encoding
    try:
        size = re2.compile(pattern, options).programsize
    except re2.error as error:
        said = error.args[0].decode(errors="replace")
        # What is no expression is soon known; what is too large, after much work.
        return cut(said), MAX_PROGRAM_SIZE if _TOO_LARGE in said else len(pattern)
    if size > MAX_PROGRAM_SIZE:
        return (
            f"it needs {size} RE2 instructions, at most {MAX_PROGRAM_SIZE} are allowed; use fewer repetitions"
        ), size
    return "", size
