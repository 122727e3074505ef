"""Encoder of Protocol Buffers messages (https://protobuf.dev/programming-guides/encoding/). Pure.

The encoder is our own, because the library would take 2 MB of memory in an agent beside every workload.
"""

import struct
from collections.abc import Iterable
from typing import Final

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_MOST_BYTES: Final = 10

Value = int | float | str | bytes | tuple[int, ...] | list[bytes]
"""Value of a field: a number, text, an encoded message, packed numbers, or several messages."""


def message(*fields: tuple[int, Value]) -> bytes:
    """Return a message with these fields, by number; values that are 0 or empty are left out.

    A `bytes` value is an encoded message, and written even if empty, because the presence has a meaning. For
    example, the field `(1, 5)` gives the bytes `08 05`.
    """
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: Value) -> bytes:
    match value:
        case bytes():
            return _lengthy(number, value)
        case list():
            return b"".join(_lengthy(number, item) for item in value)
        case _ if not value:
            return b""
        case str():
            return _lengthy(number, value.encode())
        case tuple():
            return _lengthy(number, b"".join(map(_varint, value)))
        case float():
            return _varint(number << 3 | _FIXED64) + struct.pack("<d", value)
        case int():
            return _varint(number << 3 | _VARINT) + _varint(value)


def _lengthy(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def number_of(written: bytes, wanted: int) -> int:
    """Return the number in a field of a message, 0 if missing; raise ValueError for malformed bytes."""
    number, rest = 0, iter(written)
    for first in rest:
        tag = _read_varint(first, rest)
        match tag & 7:
            case 0:
                value = _read_varint(_next(rest), rest)
                number = value if tag >> 3 == wanted else number
            case 1:
                _skip(rest, 8)
            case 2:
                _skip(rest, _read_varint(_next(rest), rest))
            case 5:
                _skip(rest, 4)
            case kind:
                raise ValueError(f"a field of the kind {kind} is not in any message")
    return number


def _read_varint(first: int, rest: Iterable[int]) -> int:
    value, shift = first & 0x7F, 7
    while first > 0x7F:
        first = _next(rest)
        value |= (first & 0x7F) << shift
        shift += 7
        if shift > 7 * _MOST_BYTES:
            raise ValueError("a number in a message is longer than one can be")
    return value


def _next(rest: Iterable[int]) -> int:
    for number in rest:
        return number
    raise ValueError("a message ends within a field")


def _skip(rest: Iterable[int], count: int) -> None:
    for _ in range(count):
        _next(rest)
