"""Bytes that stay for as long as a resource does and are seldom asked for: packed, they take a third.

A listener's are sent once to each proxy of a group, and once more to who comes back; between that only its
version is looked at.
"""

import zlib
from typing import Final

LEAST: Final = 1024
"""Fewer bytes are left as they are: little is won."""

MOST: Final = 64 * 1024
"""More as well: they would hold the event loop, and there are few such resources."""

_LEVEL: Final = 1
_WINDOW: Final = 13
_MEMORY: Final = 6
"""zlib's window (as a power of two) and memory: more is cleared for each packing, and wins nothing here."""


class Packed(bytes):
    """Bytes in zlib's format."""

    __slots__ = ()


def packed(plain: bytes) -> bytes:
    """Return bytes as they are to be kept."""
    if not LEAST <= len(plain) <= MOST:
        return plain
    packing = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY)
    return Packed(packing.compress(plain) + packing.flush())


def unpacked(kept: bytes) -> bytes:
    """Return bytes as they were before they were packed, if they were."""
    return zlib.decompress(kept) if isinstance(kept, Packed) else kept
