"""Compression of rarely read resource bodies in memory, with a gain of about 90 %.

A listener is sent once to each proxy of a group, and again to a reconnecting proxy. Between these moments
only the version is needed. A body is compressed against the first body of the same type, which stays in
memory for the life of the process, because listeners of different groups are very similar.
"""

import zlib
from typing import Final

LEAST: Final = 1024
"""Bodies with fewer bytes stay uncompressed, because the gain would be small.

Clusters and routes for calls are mostly such bodies, and many proxies receive each. By calculation packing
them would save 1 kB per service, and cost a dozen decompressions for each newly connected group.
"""

MOST: Final = 64 * 1024
"""Bodies with more bytes stay as they are too.

Packing would block the event loop, and such bodies are rare.
"""

_LEVEL: Final = 1
_WINDOW: Final = -14
_MEMORY: Final = 6
"""zlib's window (a power of two; negative: no header and checksum) and memory level.

Both are low, because zlib copies this state for each packing, and higher values do not compress better here.
"""


class DeflatedBytes(bytes):
    """The body of a resource, compressed with zlib's deflate."""

    __slots__ = ()


class _PackingMethod:
    """Compression of the resource bodies of one type, with a common dictionary. Threads may share it."""

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
    """Return bytes in the form to keep.

    Bodies of one `kind` should be similar, and must not contain secrets.
    """
    if not LEAST <= len(plain) <= MOST:
        return plain
    packing = _BY_KIND.get(kind) or _BY_KIND.setdefault(kind, _PackingMethod(plain))
    return packing.packed(plain)


def unpacked(kept: bytes, kind: str) -> bytes:
    """Return the original bytes of a resource's body. `kind` must be the one used for packing."""
    return _BY_KIND[kind].unpacked(kept) if isinstance(kept, DeflatedBytes) else kept
