"""Requests from bytes, each read once for all the streams that say the same."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from xds.wire import DeltaRequest, Request, read_delta_request, read_request

ENTRIES: Final = 1024
BYTES: Final = 4 * 1024 * 1024

Read = TypeVar("Read", Request, DeltaRequest)


class _Memory(Generic[Read]):
    """The newest requests by their bytes, at most ENTRIES of them, of BYTES in all."""

    def __init__(self, parse: Callable[[bytes], Read]) -> None:
        self._parse: Callable[[bytes], Read] = parse
        self._known: OrderedDict[bytes, Read] = OrderedDict()
        self._size = 0

    def read(self, data: bytes) -> Read:
        """Return the request, the same object for the same bytes; raise WireError if it is none."""
        found = self._known.get(data)
        if found is None:
            found = self._parse(data)
            if found.node is None and len(data) * 8 <= BYTES:
                self._known[data] = found
                self._size += len(data)
                while len(self._known) > ENTRIES or self._size > BYTES:
                    self._size -= len(self._known.popitem(last=False)[0])
        return found


class Decoder:
    """Reads requests. An ACK is the same bytes on every stream that is as far: nonces are small numbers."""

    def __init__(self) -> None:
        self.sotw = _Memory(read_request).read
        self.delta = _Memory(read_delta_request).read
