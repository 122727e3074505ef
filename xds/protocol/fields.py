"""Scanner for the fields of a message, without parsing their content.

In the Protocol Buffers encoding a message is a sequence of fields, so a message can be split between any two
fields.
"""

from collections.abc import Iterator
from typing import Final

from xds.protocol.wire import WireError

_LONGEST_VARINT: Final = 70
"""Upper bound of a varint in bits: 10 bytes with 7 bits each."""


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, start, content start and end of each field in `data[at:end]`; may raise WireError."""
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
                raise WireError("the message is not a request: it has a group or an invalid wire type")
        if length > end - at:
            raise WireError("the message is not a request: it ends within a field")
        yield tag >> 3, begin, at, at + length
        at += length


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a varint and the next position. For example, the bytes `ac 02` give 300."""
    value = shift = 0
    while at < end and shift < _LONGEST_VARINT:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError("the message is not a request: it ends within a number")
