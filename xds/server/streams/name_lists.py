"""Cache of long lists of names in requests, parsed once for all streams that send them.

Where every sidecar may call every service, each requests the same thousands of endpoints and routes. The
requests differ, because each begins with its node, but the bytes of the names in them are equal.
"""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from xds.protocol.fields import fields
from xds.protocol.resources.name_sets import NameList
from xds.protocol.resources.resource import ResourceName
from xds.protocol.wire import (
    DeltaRequest,
    Request,
    WireError,
    length_delimited,
    read_delta_request,
    read_request,
)
from xds.stream_status import Variant

AnyRequest = Request | DeltaRequest

LONG: Final = 4096
"""Bytes of a request from which the cache is used; parsing a shorter one is as fast."""

LISTS: Final = 32
BYTES: Final = 8 * 1024 * 1024
"""Number of cached lists, and their memory in bytes. The least recently used are dropped."""

BEGINNING: Final = 256
"""First bytes by which a list is recognised as seen before."""

_SLOT: Final = 96
"""Memory of a name in a list and in its set of names, in bytes, without the text."""

_NAMES: Final = 3
"""Field number of the names: `resource_names` in one variant, `resource_names_subscribe` in the other."""

_BEFORE: Final = 4
"""Greatest number of fields before the names, if the fields are nearly in order."""

READ: Final[Mapping[Variant, Callable[[bytes], AnyRequest]]] = {
    Variant.SOTW: read_request,
    Variant.DELTA: read_delta_request,
}
"""Parsers of a whole request for each variant; they raise WireError for malformed bytes."""


class NameLists:
    """Parses requests, and caches the lists of names in long ones, as bytes and as names."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, NameList] = OrderedDict()
        self._size = 0
        self._met: OrderedDict[tuple[bytes, int], None] = OrderedDict()

    def read(self, variant: Variant, data: bytes) -> AnyRequest:
        """Return the request, with shared names for an equal list; raise WireError if it is malformed."""
        if len(data) < LONG or (begin := _first_name(data)) is None:
            return READ[variant](data)
        result = max((item for item in self._known if data.startswith(item, begin)), key=len, default=None)
        if result is None:
            request = READ[variant](data)
            if not self._was_met(data, begin):
                return request
            names = self._learn(data, begin, _names(request))
            return request if names is None else _with_names(request, names)
        self._known.move_to_end(result)
        # A message is a sequence of fields, so it stays valid when some of them are cut out.
        rest = READ[variant](data[:begin] + data[begin + len(result) :])
        names, more = self._known[result], _names(rest)
        return _with_names(rest, names + more if more else names)

    def _was_met(self, data: bytes, begin: int) -> bool:
        """Return whether a list with this beginning and length was seen lately.

        Caching one is slower than parsing it.
        """
        looks = data[begin : begin + BEGINNING], len(data) - begin
        if looks in self._met:
            return True
        self._met[looks] = None
        if len(self._met) > LISTS:
            self._met.popitem(last=False)
        return False

    def _learn(self, data: bytes, begin: int, names: tuple[ResourceName, ...]) -> NameList | None:
        """Cache a list whose fields are contiguous and encoded in canonical form, as usual.

        Return it, else None.
        """
        encoded = b"".join(length_delimited(_NAMES, name.encode()) for name in names)
        name_list = NameList(names)
        if (
            len(encoded) < LONG // 2
            or _memory(encoded, name_list) > BYTES
            or not data.startswith(encoded, begin)
        ):
            return None
        self._known[encoded] = name_list
        self._size += _memory(encoded, name_list)
        while len(self._known) > LISTS or self._size > BYTES:
            self._size -= _memory(*self._known.popitem(last=False))
        return name_list


def _first_name(data: bytes) -> int | None:
    """Return the position of the first resource name in a request; None if not near the beginning."""
    begun = itertools.islice(fields(data, 0, len(data)), _BEFORE + 1)
    try:
        return next((begin for number, begin, _, _ in begun if number == _NAMES), None)
    except WireError:
        return None  # the full parser reports the error


def _memory(encoded: bytes, names: NameList) -> int:
    """Return the approximate memory of a list; two bytes on the wire may take a hundred and more."""
    return len(encoded) + names.text + _SLOT * len(names)


def _names(request: AnyRequest) -> tuple[ResourceName, ...]:
    return request.names if isinstance(request, Request) else request.subscribe


def _with_names(request: AnyRequest, names: tuple[ResourceName, ...]) -> AnyRequest:
    """Return a request with other names."""
    if isinstance(request, Request):
        return replace(request, names=names)
    return replace(request, subscribe=names)
