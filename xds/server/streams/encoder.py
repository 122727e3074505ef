"""Encoder of responses that encodes equal responses once for all streams."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.resources import MANY, Resources, identity
from xds.protocol.wire import (
    Response,
    delta_resource_field,
    delta_response_body,
    resource_field,
    response_body,
    with_nonce,
)
from xds.stream_status import Variant

_Key = tuple[Variant, TypeUrl, Version, Hashable, tuple[ResourceName, ...], bool]

ENTRIES: Final = 256
"""Number of cached responses.

When hundreds of clients connect at once, each is at another of five or more.
"""

BYTES: Final = 24 * 1024 * 1024
OWN_BYTES: Final = 8 * 1024 * 1024
"""Part of BYTES for one owner, so that a client with ever new requests does not displace shared responses."""

LONG: Final = 64 * 1024
"""Resources with more bytes are cached in encoded form, like the resources of large responses."""

LAST: Final = 8 * 1024 * 1024
"""Greatest message that is cached with its nonce, in bytes: the next stream probably needs the same."""

FIELDS: Final = 16 * 1024 * 1024
"""Bytes of single encoded resources in the cache; responses of several groups share them.
"""

_FIELD: Final[Mapping[Variant, Callable[[Resource], bytes]]] = {
    Variant.SOTW: resource_field,
    Variant.DELTA: delta_resource_field,
}


class _Fields:
    """Cache of the encoded resources of large responses, with about FIELDS bytes."""

    def __init__(self, variant: Variant) -> None:
        self._make = _FIELD[variant]
        self._known: dict[int, tuple[Resource, bytes]] = {}
        self._unused: dict[int, tuple[Resource, bytes]] = {}  # not needed since the last call of `age`
        self._size = 0

    def age(self) -> None:
        """Drop encoded resources that were not needed since the last call."""
        self._size -= sum(len(encoded) for _, encoded in self._unused.values())
        self._unused, self._known = self._known, {}

    def __call__(self, resource: Resource) -> bytes:
        """Return a resource encoded as a field of a response."""
        # The entry keeps the resource alive, so no other object can get its id.
        if (known := self._known.get(id(resource))) is not None:
            return known[1]
        if (known := self._unused.pop(id(resource), None)) is not None:
            self._known[id(resource)] = known
            return known[1]
        result = self._make(resource)
        if self._size + len(result) > FIELDS:
            self._known.clear()
            self._unused.clear()
            self._size = 0
        self._size += len(result)
        self._known[id(resource)] = (resource, result)
        return result


@dataclass(slots=True, eq=False)
class _Body:
    """An encoded response without its nonce, with its source and its first user.

    A large one is kept in parts, which other bodies may share; joining parts takes no longer than copying the
    whole to append a nonce. `size` is the total in bytes. `needed` is the Encoder's age at the last use.
    """

    parts: Sequence[bytes]
    size: int
    made_of: Resources | tuple[Resource, ...]
    owner: Hashable
    needed: int


class _LastMessage(NamedTuple):
    """The message encoded last, with its nonce and the response."""

    response: Response
    body: _Body
    message: bytes


class Encoder:
    """Encodes responses and caches the newest: at most ENTRIES of them, BYTES in all, until they age.

    The owner of a response is the account that needed it first. Each owner has at most OWN_BYTES, or one
    response.
    """

    def __init__(self, control_plane: str) -> None:
        self._control_plane = control_plane
        self._bodies: OrderedDict[_Key, _Body] = OrderedDict()
        self._owned: Counter[Hashable] = Counter()
        self._tuples: dict[int, tuple[tuple[Resource, ...], Hashable]] = {}
        self._size = 0
        self._last: _LastMessage | None = None
        self._age = 0
        self._fields = {variant: _Fields(variant) for variant in Variant}
        self.made = 0

    def age(self) -> None:
        """Drop responses not needed since the last call, for example after many clients reconnected."""
        for key in [key for key, body in self._bodies.items() if body.needed < self._age]:
            self._forget(key)
        self._age += 1
        self._tuples.clear()
        self._last = None
        for fields in self._fields.values():
            fields.age()

    def known(self, variant: Variant, response: Response) -> bytes | None:
        """Return the response's bytes if the cache can find them cheaply, else None.

        That is possible for few resources, for a whole table, and for a tuple of resources that other streams
        sent. For another large tuple the identity of each resource must be read, which `encode` does.
        """
        if (
            self._last is not None and response is self._last.response
        ):  # streams in equal states share the object
            return self._last.message
        if self._is_dear(response.made_of):
            return None
        body = self._bodies.get(self._key(variant, response))
        return None if body is None else self._numbered(body, response)

    def encode(self, variant: Variant, response: Response, owner: Hashable = None) -> bytes:
        """Return the response's bytes, from the cache or encoded and cached.

        Streams with equal responses share the bytes except for the nonce, which is encoded last. The cached
        bytes count against the quota of `owner`.
        """
        key = self._key(variant, response)
        if (body := self._bodies.get(key)) is None:
            parts = self._parts(variant, response)
            body = _Body(parts, sum(map(len, parts)), response.made_of, owner, self._age)
            self._remember(key, body)
        return self._numbered(body, response)

    def _numbered(self, body: _Body, response: Response) -> bytes:
        body.needed = self._age
        last = self._last
        if last is not None and body is last.body and response.nonce == last.response.nonce:
            return last.message  # an equal response: streams that began together have equal nonces
        message = with_nonce(body.parts, response.nonce)
        self._last = _LastMessage(response, body, message) if len(message) <= LAST else None
        return message

    def _key(self, variant: Variant, response: Response) -> _Key:
        # Keyed by identity, which is fast, because users of the same resource hold the same object. The entry
        # keeps these objects alive, so no other object can get their ids.
        return (
            variant,
            response.type_url,
            response.version,
            self._identity(response.made_of),
            response.removed,
            response.heartbeat,
        )

    def _is_dear(self, resources: Resources | tuple[Resource, ...]) -> bool:
        """Return whether the key of many resources (`_identity`) still has to be computed."""
        return isinstance(resources, tuple) and len(resources) >= MANY and id(resources) not in self._tuples

    def _identity(self, resources: Resources | tuple[Resource, ...]) -> Hashable:
        """Return a cache key for the resources of a response; for a large tuple it is computed once."""
        if not isinstance(resources, tuple) or len(resources) < MANY:
            return identity(resources)
        known = self._tuples.get(id(resources))
        if known is None:
            if len(self._tuples) >= ENTRIES:
                self._tuples.clear()
            # The entry keeps the tuple alive, so no other object can get its id.
            known = self._tuples[id(resources)] = (resources, identity(resources))
        return known[1]

    def _parts(self, variant: Variant, response: Response) -> Sequence[bytes]:
        self.made += 1
        is_long = len(response.resources) >= MANY or any(len(e.kept) > LONG for e in response.resources)
        fields = self._fields[variant] if is_long else _FIELD[variant]
        match variant:
            case Variant.SOTW:
                parts = response_body(response, self._control_plane, fields)
            case Variant.DELTA:
                parts = delta_response_body(response, self._control_plane, fields)
        return parts if is_long else (b"".join(parts),)

    def _remember(self, key: _Key, body: _Body) -> None:
        self._bodies[key] = body
        self._size += body.size
        self._owned[body.owner] += body.size
        while len(self._bodies) > 1 and (len(self._bodies) > ENTRIES or self._size > BYTES):
            self._forget(next(iter(self._bodies)))
        if body.owner is not None and self._owned[body.owner] > OWN_BYTES:
            for other in [known for known, item in self._bodies.items() if item.owner is body.owner][:-1]:
                if self._owned[body.owner] > OWN_BYTES:
                    self._forget(other)

    def _forget(self, key: _Key) -> None:
        body = self._bodies.pop(key)
        self._size -= body.size
        self._owned[body.owner] -= body.size
        if not self._owned[body.owner]:
            del self._owned[body.owner]
