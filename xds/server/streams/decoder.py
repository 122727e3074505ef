"""Decoder of requests that parses equal bytes once for all streams."""

from collections import OrderedDict
from collections.abc import Collection
from typing import Final

from xds.protocol.resources.name_sets import text_bytes
from xds.protocol.wire import DeltaRequest, Request
from xds.server.streams.name_lists import AnyRequest, NameLists
from xds.stream_status import Variant

ENTRIES: Final = 1024
BYTES: Final = 4 * 1024 * 1024
_SLOT: Final = 64


class Decoder:
    """Parses requests and caches the newest: at most ENTRIES of them, with BYTES of memory in all.

    An ACK has the same bytes on every stream in the same state, because nonces are small numbers. A first
    request contains the node, so its bytes are unique, but its names may be shared
    (`xds.server.streams.name_lists`).
    """

    def __init__(self) -> None:
        self._known: dict[Variant, OrderedDict[bytes, tuple[AnyRequest, int]]] = {
            variant: OrderedDict() for variant in Variant
        }
        self._size = dict.fromkeys(Variant, 0)
        self._lists = NameLists()

    def piece(self, variant: Variant, data: bytes) -> AnyRequest:
        """Parse a piece of a long request without caching it; raise WireError if it is malformed."""
        return self._lists.read(variant, data)

    def known(self, variant: Variant, data: bytes) -> AnyRequest | None:
        """Return the cached request for these bytes, or None."""
        result = self._known[variant].get(data)
        return None if result is None else result[0]

    def read(self, variant: Variant, data: bytes) -> AnyRequest:
        """Return the request, the same object for equal bytes; raise WireError if it is malformed."""
        known = self._known[variant]
        if (result := known.get(data)) is not None:
            return result[0]
        request = self._lists.read(variant, data)
        if request.node is None and (size := len(data) + _text(request)) * 8 <= BYTES:
            known[data] = request, size
            self._size[variant] += size
            while len(known) > ENTRIES or self._size[variant] > BYTES:
                self._size[variant] -= known.popitem(last=False)[1][1]
        return request


def _text(request: AnyRequest) -> int:
    """Return the approximate memory of a request; two bytes on the wire may take sixty."""
    texts: list[Collection[str]]
    match request:
        case Request():
            texts = [request.names]
        case DeltaRequest():
            held = request.initial_versions
            texts = [request.subscribe, request.unsubscribe, held.keys(), held.values()]
    return sum(text_bytes(text) + _SLOT * len(text) for text in texts)
