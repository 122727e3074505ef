"""Splitter of a long request into pieces that are valid requests, and the join of their results.

A request of megabytes is parsed in short steps, so that other streams get a turn between them. Names are
counted before they become objects, because two bytes on the wire may take a hundred in memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from xds.budget import Excess, LimitKind, check
from xds.limits import Limits
from xds.protocol.fields import fields
from xds.protocol.wire import (
    ERROR_LIMIT,
    NO_NONCE,
    NO_VERSION,
    DeltaRequest,
    Request,
    length_delimited,
)
from xds.server.streams.name_lists import AnyRequest
from xds.stream_status import Variant

FIELDS: Final = 2048
"""Fields in one piece; finding and parsing them takes about 1 ms."""

WHOLE: Final = 256 * 1024
"""Bytes up to which a request is parsed as a whole."""

_CODE, _MESSAGE = 1, 2
"""Field numbers of google.rpc.Status."""

_TYPE_URL: Final = {Variant.SOTW: 4, Variant.DELTA: 2}
_NODE: Final = {Variant.SOTW: 2, Variant.DELTA: 1}
_ERROR: Final = {Variant.SOTW: 6, Variant.DELTA: 7}
_NAMES: Final = {Variant.SOTW: (3,), Variant.DELTA: (3, 4, 5)}


def pieces(data: bytes, variant: Variant, limits: Limits) -> Iterator[bytes]:
    """Yield pieces of at most FIELDS fields or WHOLE bytes (a single field may be longer).

    An error message longer than `node_bytes` is cut to the part that is kept. Raises Excess for any other
    field of that length and for more names than one certificate may have, and WireError for malformed bytes.
    """
    begun, count, names, kind = 0, 0, 0, b""
    for number, begin, content, end in fields(data, 0, len(data)):
        count += 1
        names += number in _NAMES[variant]
        if end - content > limits.node_bytes:
            if number != _ERROR[variant]:
                raise Excess(
                    LimitKind.NODE if number == _NODE[variant] else LimitKind.FIELD,
                    end - content,
                    limits.node_bytes,
                )
            yield data[begun:begin]
            yield kind + length_delimited(number, _shortened(data, content, end))
            begun, count = end, 0
        elif count == FIELDS or end - begun >= WHOLE:
            check(LimitKind.NAMES, names, limits.names_per_certificate)
            yield data[begun:end]
            begun, count = end, 0
        if number == _TYPE_URL[variant]:
            kind = data[begin:end]
    check(LimitKind.NAMES, names, limits.names_per_certificate)
    yield data[begun:]


def joined(requests: Sequence[AnyRequest]) -> AnyRequest:
    """Join the requests parsed from pieces. For a field that occurs in several the last one counts."""
    last = requests[::-1]
    whole = replace(
        requests[0],
        type_url=next((item.type_url for item in last if item.type_url), requests[0].type_url),
        nonce=next((item.nonce for item in last if item.nonce), NO_NONCE),
        rejection=next((item.rejection for item in last if item.rejection), None),
        node=next((item.node for item in last if item.node), None),
    )
    if isinstance(whole, Request):
        sotw = [request for request in requests if isinstance(request, Request)]
        version = next((request.version for request in reversed(sotw) if request.version), NO_VERSION)
        return replace(
            whole, names=tuple(name for request in sotw for name in request.names), version=version
        )
    delta = [request for request in requests if isinstance(request, DeltaRequest)]
    return replace(
        whole,
        subscribe=tuple(name for delta_request in delta for name in delta_request.subscribe),
        unsubscribe=tuple(name for delta_request in delta for name in delta_request.unsubscribe),
        initial_versions={
            n: version for delta_request in delta for n, version in delta_request.initial_versions.items()
        },
    )


def _shortened(data: bytes, at: int, end: int) -> bytes:
    """Return the `error_detail` of a request, with its code and the part of its message that is kept."""
    kept = b""
    for number, begin, content, following in fields(data, at, end):
        if number == _CODE:
            kept += data[begin:following]
        elif number == _MESSAGE:
            words = data[content : min(following, content + 4 * ERROR_LIMIT)].decode(errors="ignore")
            kept += length_delimited(number, words.encode())
    return kept
