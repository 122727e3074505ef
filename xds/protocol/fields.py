"""The fields of a message, found one after the other without being read.

(Protocol Buffers encoding: a message is a sequence of fields, and may be split between any two of them.)
"""

from collections.abc import Iterator
from typing import Final

from xds.protocol.wire import WireError

_LONGEST_VARINT: Final = 70
"""Bits, of which seven are in a byte."""


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield each field's number, and where it, its content and the next field begin; raise WireError."""
    while at < end:
        begin = at
        tag, at = _varint(data, at, end)
        match tag & 7:
            case 2:
                length, at = _varint(data, at, end)
            case 0:
                length = _varint(data, at, end)[1] - at
            case 1:
                length = 8
            case 5:
                length = 4
            case _:
                raise WireError("not a request: a group, or no wire type")
        if length > end - at:
            raise WireError("not a request: it ends within a field")
        yield tag >> 3, begin, at, at + length
        at += length


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    value = shift = 0
    while at < end and shift < _LONGEST_VARINT:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError("not a request: it ends within a number")
