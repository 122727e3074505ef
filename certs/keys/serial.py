"""Serial numbers as text: lower-case hexadecimal without prefix or leading zeros."""

import re
import secrets
from typing import Final

from certs.errors import RequestError

_WRITTEN: Final = re.compile(r"(0x)?[0-9a-f]+")
_BITS: Final = 128


def new_serial() -> int:
    """Return a serial number of 128 random bits, above zero (RFC 5280, 4.1.2.2)."""
    return secrets.randbits(_BITS) or 1


def serial_text(number: int) -> str:
    """Return a certificate's serial number in our notation, for example `1f` for 31."""
    return format(number, "x")


def read_serial(text: str) -> str:
    """Parse a serial in common notations (upper case, colons, `0x`, leading zeros) into ours.

    For example, `3F:9A:02`, `0x3f9a02` and `003f9a02` give `3f9a02`. Raises RequestError for anything else
    than one hexadecimal number.
    """
    plain = text.strip().lower().replace(":", "")
    if _WRITTEN.fullmatch(plain) is None or len(plain) > 64:
        raise RequestError(f"serial {text[:80]!r} is not a hexadecimal number, for example 3f9a02")
    return serial_text(int(plain, 16))
