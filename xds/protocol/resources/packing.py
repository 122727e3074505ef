"""Bytes that stay for as long as a resource does and are seldom asked for: packed, they take a tenth.

A listener's are sent once to each proxy of a group, and once more to who comes back; between that only its
version is looked at. What is packed is how they differ from the first that were packed of their type, which
stay for as long as the process does: a group's listener is much like another's.
"""

import zlib
from typing import Final

LEAST: Final = 1024
"""Fewer bytes are left as they are: little is won. Clusters and routes for calls mostly, each of which many
proxies are sent: by calculation 1 kB of a service, and a dozen to unpack for each group that comes."""

MOST: Final = 64 * 1024
"""More as well: they would hold the event loop, and there are few such resources."""

_LEVEL: Final = 1
_WINDOW: Final = -14
_MEMORY: Final = 6
"""zlib's window (as a power of two; negative: without header and checksum) and memory: more is copied for
each packing, and wins nothing here."""


class DeflatedBytes(bytes):
    """Bytes as zlib's deflate left them."""

    __slots__ = ()


class _PackingMethod:
    """How bytes of one kind are packed. Threads may share it."""

    def __init__(self, like: bytes) -> None:
        self._like = like
        self._begun = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zdict=like)

    def packed(self, plain: bytes) -> DeflatedBytes:
        packing = self._begun.copy()
        return DeflatedBytes(packing.compress(plain) + packing.flush())

    def unpacked(self, kept: DeflatedBytes) -> bytes:
        return zlib.decompressobj(_WINDOW, zdict=self._like).decompress(kept)


_BY_KIND: Final[dict[str, _PackingMethod]] = {}


def packed(plain: bytes, kind: str) -> bytes:
    """Return bytes as they are to be kept; those of one kind are much like one another, and no secret."""
    if not LEAST <= len(plain) <= MOST:
        return plain
    packing = _BY_KIND.get(kind) or _BY_KIND.setdefault(kind, _PackingMethod(plain))
    return packing.packed(plain)


def unpacked(kept: bytes, kind: str) -> bytes:
    """Return bytes as they were before they were packed, if they were; `kind` is the one they had then."""
    return _BY_KIND[kind].unpacked(kept) if isinstance(kept, DeflatedBytes) else kept
