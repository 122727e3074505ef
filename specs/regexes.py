r"""Whether an expression is one to Envoy: judged by RE2 itself, for Envoy refuses a whole resource for one.

Envoys of different versions read differently: 1.38.3 takes expression and value for UTF-8, 1.39.3 and 1.40
take them for bytes (Latin-1). Some expressions are right in one reading alone, such as `\x{10FFFF}`: both
must be.
"""

from functools import lru_cache
from typing import Final

import re2

from specs.show import cut

MAX_LENGTH: Final = 4096
MAX_PROGRAM_SIZE: Final = 32_768
"""How many instructions RE2 may need for an expression.

Envoy refuses more than the runtime key `re2.max_program_size.error_level` allows, by default 100: the
bootstraps of proxies set it above this bound.
"""

_READINGS: Final = (
    (re2.Options.Encoding.UTF8, ""),
    (re2.Options.Encoding.LATIN1, ", read byte by byte as newer Envoys do"),
)


@lru_cache(4096)
def regex_fault(pattern: str) -> str:
    """Return what is wrong with `pattern`, or an empty string if it is right; an empty one is not."""
    if not pattern:
        return "must not be empty; .* is any value"
    if len(pattern) > MAX_LENGTH:
        return f"must be a regular expression of at most {MAX_LENGTH} characters"
    try:
        encoded = pattern.encode()
    except UnicodeEncodeError:
        return "must be a regular expression of whole characters, not of halves of surrogate pairs"
    # Without a character or an escape beyond ASCII both read the same, and bytes need no longer a program.
    plain = pattern.isascii() and "\\" not in pattern
    for encoding, reading in _READINGS[:1] if plain else _READINGS:
        fault = _fault(encoded, encoding)
        if fault:
            return f"must be a regular expression (RE2{reading}): {fault}"
    return ""


def _fault(pattern: bytes, encoding: re2.Options.Encoding) -> str:
    options = re2.Options()
    options.log_errors = False
    options.encoding = encoding
    try:
        size = re2.compile(pattern, options).programsize
    except re2.error as error:
        return cut(error.args[0].decode(errors="replace"))
    if size > MAX_PROGRAM_SIZE:
        return f"it comes to {size} instructions, and may to {MAX_PROGRAM_SIZE}; repeat less"
    return ""
