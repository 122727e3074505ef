"""Long lists of names in requests, each read once for all the streams that send it.

Where every sidecar may call everything, each asks for the same thousands of assignments and routes. Of such
requests no two are the same bytes, for they begin with who asks; the names in them are.
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
"""Bytes of a request that is looked at for a list: a shorter one is read as soon as it were found."""

LISTS: Final = 32
BYTES: Final = 8 * 1024 * 1024
"""How many lists are kept, and how much memory they may take in all: those that were needed last."""

BEGINNING: Final = 256
"""Bytes by which a list is taken for one that has come before."""

_SLOT: Final = 96
"""What a name takes in a list and in the set of its names, besides its text."""

_NAMES: Final = 3
"""The field that lists them: `resource_names` in one variant, `resource_names_subscribe` in the other."""

_BEFORE: Final = 4
"""So many fields stand before it at most, where they stand in their order or nearly so."""

READ: Final[Mapping[Variant, Callable[[bytes], AnyRequest]]] = {
    Variant.SOTW: read_request,
    Variant.DELTA: read_delta_request,
}
"""Read a request of either variant as a whole; they raise WireError if it is none."""


class NameLists:
    """Reads requests, and keeps the lists of names that stand in long ones, as bytes and as names."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, NameList] = OrderedDict()
        self._size = 0
        self._met: OrderedDict[tuple[bytes, int], None] = OrderedDict()

    def read(self, variant: Variant, data: bytes) -> AnyRequest:
        """Return the request, of equal lists the very same names; raise WireError if it is none."""
        if len(data) < LONG or (begin := _first_name(data)) is None:
            return READ[variant](data)
        found = max((each for each in self._known if data.startswith(each, begin)), key=len, default=None)
        if found is None:
            request = READ[variant](data)
            if not self._was_met(data, begin):
                return request
            names = self._learn(data, begin, _names(request))
            return request if names is None else _with_names(request, names)
        self._known.move_to_end(found)
        # A message is a sequence of fields: without some of them it is a message still.
        rest = READ[variant](data[:begin] + data[begin + len(found) :])
        names, more = self._known[found], _names(rest)
        return _with_names(rest, names + more if more else names)

    def _was_met(self, data: bytes, begin: int) -> bool:
        """Say whether a list that looks like it came lately: to learn one takes longer than to read it."""
        looks = data[begin : begin + BEGINNING], len(data) - begin
        if looks in self._met:
            return True
        self._met[looks] = None
        if len(self._met) > LISTS:
            self._met.popitem(last=False)
        return False

    def _learn(self, data: bytes, begin: int, names: tuple[ResourceName, ...]) -> NameList | None:
        """Keep a list that stands in one piece, each name as short as it can be said: most do. Return it."""
        encoded = b"".join(length_delimited(_NAMES, name.encode()) for name in names)
        found = NameList(names)
        if len(encoded) < LONG // 2 or _memory(encoded, found) > BYTES or not data.startswith(encoded, begin):
            return None
        self._known[encoded] = found
        self._size += _memory(encoded, found)
        while len(self._known) > LISTS or self._size > BYTES:
            self._size -= _memory(*self._known.popitem(last=False))
        return found


def _first_name(data: bytes) -> int | None:
    """Return where the first name stands; None where that is not near the beginning."""
    begun = itertools.islice(fields(data, 0, len(data)), _BEFORE + 1)
    try:
        return next((begin for number, begin, _, _ in begun if number == _NAMES), None)
    except WireError:
        return None  # whoever reads it whole says what is wrong


def _memory(encoded: bytes, names: NameList) -> int:
    """Return about how much a list takes: two bytes on the wire may be a hundred and more."""
    return len(encoded) + names.text + _SLOT * len(names)


def _names(request: AnyRequest) -> tuple[ResourceName, ...]:
    return request.names if isinstance(request, Request) else request.subscribe


def _with_names(request: AnyRequest, names: tuple[ResourceName, ...]) -> AnyRequest:
    """Return a request with these names in the place of its own."""
    if isinstance(request, Request):
        return replace(request, names=names)
    return replace(request, subscribe=names)
