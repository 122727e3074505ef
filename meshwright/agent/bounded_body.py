"""Reader of HTTP bodies of any length with bounded memory."""

import zlib
from typing import Final

import aiohttp

PART_BYTES: Final = 64 * 1024
"""Bytes to read and decompress between two turns of the event loop."""
_GZIP: Final = 16 + zlib.MAX_WBITS


class TooLarge(ValueError):
    """The decompressed HTTP body is larger than the caller's limit."""


class UnreadableBody(ValueError):
    """The body does not have the encoding of its headers, or the encoding is not supported."""


async def body(answer: aiohttp.ClientResponse, most: int) -> bytes:
    """Return the decompressed body of an answer; raise TooLarge, UnreadableBody, or the errors of aiohttp.

    The session must have `auto_decompress=False`, because aiohttp decompresses without a limit.
    """
    encoding = answer.headers.get("Content-Encoding", "identity").strip().lower()
    inflater = Inflater(most) if encoding in ("gzip", "x-gzip") else None
    if inflater is None and encoding not in ("identity", ""):
        raise UnreadableBody(f"its Content-Encoding is {encoding[:20]!r}: must be identity or gzip")
    content = bytearray()
    async for part in answer.content.iter_chunked(PART_BYTES):
        content += part if inflater is None else inflater.take(part)
        if len(content) > most:
            raise TooLarge(f"it has more than {most} bytes")
    if inflater is not None:
        inflater.end()
    return bytes(content)


class Inflater:
    """Gzip decompressor with an output of at most `most` + 1 bytes, so that a larger body is detected."""

    def __init__(self, most: int) -> None:
        self._inflating = zlib.decompressobj(_GZIP)
        self._left = most + 1

    def take(self, part: bytes) -> bytes:
        """Decompress the next bytes of a body; raise TooLarge or UnreadableBody."""
        try:
            content = self._inflating.decompress(part, self._left)
        except zlib.error as error:
            raise UnreadableBody(f"it is not gzip: {error}") from error
        self._left -= len(content)
        if self._left <= 0:
            raise TooLarge("decompressed, it has more bytes than allowed")
        if self._inflating.unused_data:
            raise UnreadableBody("something follows the end of its gzip")
        return content

    def end(self) -> None:
        """Raise UnreadableBody if the compressed body is incomplete."""
        if not self._inflating.eof:
            raise UnreadableBody("its gzip is cut short")
