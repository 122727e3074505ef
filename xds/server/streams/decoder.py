"""Requests from bytes, each read once for all the streams that say the same."""

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
    """Reads requests, and keeps the newest: at most ENTRIES of them, that take BYTES of memory in all.

    An ACK is the same bytes on every stream that is as far: nonces are small numbers. Of a stream's first
    request, which says who asks, the names may be those of others (`xds.server.streams.name_lists`).
    """

    def __init__(self) -> None:
        self._known: dict[Variant, OrderedDict[bytes, tuple[AnyRequest, int]]] = {
            variant: OrderedDict() for variant in Variant
        }
        self._size = dict.fromkeys(Variant, 0)
        self._lists = NameLists()

    def piece(self, variant: Variant, data: bytes) -> AnyRequest:
        """Return a piece of a long request; it is not kept. Raises WireError if it is none."""
        return self._lists.read(variant, data)

    def known(self, variant: Variant, data: bytes) -> AnyRequest | None:
        """Return the request if another stream has sent the same bytes lately."""
        found = self._known[variant].get(data)
        return None if found is None else found[0]

    def read(self, variant: Variant, data: bytes) -> AnyRequest:
        """Return the request, the same object for the same bytes; raise WireError if it is none."""
        known = self._known[variant]
        if (found := known.get(data)) is not None:
            return found[0]
        request = self._lists.read(variant, data)
        if request.node is None and (size := len(data) + _text(request)) * 8 <= BYTES:
            known[data] = request, size
            self._size[variant] += size
            while len(known) > ENTRIES or self._size[variant] > BYTES:
                self._size[variant] -= known.popitem(last=False)[1][1]
        return request


def _text(request: AnyRequest) -> int:
    """Return about how much memory a request takes: two bytes on the wire may be sixty."""
    texts: list[Collection[str]]
    match request:
        case Request():
            texts = [request.names]
        case DeltaRequest():
            held = request.initial_versions
            texts = [request.subscribe, request.unsubscribe, held.keys(), held.values()]
    return sum(text_bytes(each) + _SLOT * len(each) for each in texts)
