"""Codec of envoy.service.discovery.v3: requests from bytes, responses to bytes.

Responses are assembled from encoded bodies, without parsing them again. The nonce is appended as the last
field, so all streams can share the bytes before the nonce.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NewType, cast

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError

from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.errors import XdsError
from xds.protocol.resources.resource import SECRET, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.resources import MANY, Resources

Nonce = NewType("Nonce", str)

NO_VERSION = Version("")
NO_NONCE = Nonce("")

ERROR_LIMIT = 1024
"""Characters kept of an error message. Envoy may add a dump of the whole response (rule N2)."""

WITHHELD = "(withheld: the client's words hold a dump of the response, and a secret may be in it)"

_DUMP = re.compile(r"-----BEGIN|inline_(?:bytes|string)|private_key|goo\.gle/debug|\[type\.googleapis\.com")
"""Pattern for a message with more than a reason: a protobuf message as text, or PEM."""

_VERSION, _RESOURCES, _TYPE_URL, _NONCE, _REMOVED = 1, 2, 4, 5, 6
_SOTW_CONTROL_PLANE, _DELTA_CONTROL_PLANE = 6, 7
_RESOURCE_VERSION, _RESOURCE_BODY, _RESOURCE_NAME, _RESOURCE_TTL = 1, 2, 3, 6


class WireError(XdsError, ValueError):
    """Error for bytes other than a valid request."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """The `error_detail` of a NACK: status code, and message cut at ERROR_LIMIT characters."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class Node:
    """The node of a stream's first request, as sent by the client; none of it is verified.

    `size` is the encoded size in bytes. For example, `id` is `a1.cart.shop`.
    """

    id: str
    cluster: str = ""
    user_agent: str = ""
    size: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Request:
    """A DiscoveryRequest (state of the world). `names` keeps the client's order."""

    type_url: TypeUrl
    names: tuple[ResourceName, ...] = ()
    version: Version = NO_VERSION
    nonce: Nonce = NO_NONCE
    rejection: Rejection | None = None
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class DeltaRequest:
    """A DeltaDiscoveryRequest (incremental)."""

    type_url: TypeUrl
    subscribe: tuple[ResourceName, ...] = ()
    unsubscribe: tuple[ResourceName, ...] = ()
    initial_versions: Mapping[ResourceName, Version] = field(default_factory=dict)
    nonce: Nonce = NO_NONCE
    rejection: Rejection | None = None
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """A response of either variant. In state of the world `removed` is empty.

    A `heartbeat` names resources with a time to live, without their bodies (N5). `table` is set if the
    resources are exactly those of a table, in order, so an encoder can identify them without a look at each.
    """

    type_url: TypeUrl
    version: Version
    nonce: Nonce
    resources: tuple[Resource, ...] = ()
    removed: tuple[ResourceName, ...] = ()
    heartbeat: bool = False
    table: Resources | None = field(default=None, repr=False, compare=False)

    @property
    def made_of(self) -> Resources | tuple[Resource, ...]:
        """Return the object that identifies the resources (see `identity`).

        The table if it is large, or the tuple.
        """
        return self.resources if self.table is None or len(self.table) < MANY else self.table


def read_request(data: bytes) -> Request:
    """Parse a DiscoveryRequest; raise WireError if it is malformed."""
    try:
        message = discovery_pb2.DiscoveryRequest.FromString(data)
    except DecodeError as error:
        raise WireError("not a DiscoveryRequest") from error
    return Request(
        TypeUrl(sys.intern(message.type_url)),
        _names(message.resource_names),
        Version(message.version_info),
        Nonce(message.response_nonce),
        _rejection(message),
        _node(message),
    )


def read_delta_request(data: bytes) -> DeltaRequest:
    """Parse a DeltaDiscoveryRequest; raise WireError if it is malformed."""
    try:
        message = discovery_pb2.DeltaDiscoveryRequest.FromString(data)
    except DecodeError as error:
        raise WireError("not a DeltaDiscoveryRequest") from error
    return DeltaRequest(
        TypeUrl(sys.intern(message.type_url)),
        _names(message.resource_names_subscribe),
        _names(message.resource_names_unsubscribe),
        _versions(message.initial_resource_versions),
        Nonce(message.response_nonce),
        _rejection(message),
        _node(message),
    )


def resource_field(resource: Resource) -> bytes:
    """Encode a resource as a field of a DiscoveryResponse."""
    return length_delimited(_RESOURCES, resource.body)


def delta_resource_field(resource: Resource, *, body: bool = True) -> bytes:
    """Encode a resource as a field of a DeltaDiscoveryResponse, with its own version."""
    return length_delimited(_RESOURCES, _delta_resource(resource, body=body))


def response_body(
    response: Response, control_plane: str, field: Callable[[Resource], bytes] = resource_field
) -> list[bytes]:
    """Encode a DiscoveryResponse without its nonce, in parts.

    `field` encodes a resource, perhaps from a cache.
    """
    parts = [_text(_VERSION, response.version)]
    parts += map(field, response.resources)
    parts += [_text(_TYPE_URL, response.type_url), _identifier(_SOTW_CONTROL_PLANE, control_plane)]
    return parts


def delta_response_body(
    response: Response, control_plane: str, field: Callable[[Resource], bytes] = delta_resource_field
) -> list[bytes]:
    """Encode a DeltaDiscoveryResponse without its nonce, in parts.

    `field` encodes a resource, perhaps cached.
    """
    parts = [_text(_VERSION, response.version)]
    if response.heartbeat:
        parts += [delta_resource_field(resource, body=False) for resource in response.resources]
    else:
        parts += map(field, response.resources)
    parts.append(_text(_TYPE_URL, response.type_url))
    parts += [_text(_REMOVED, name) for name in response.removed]
    parts.append(_identifier(_DELTA_CONTROL_PLANE, control_plane))
    return parts


def with_nonce(body: Sequence[bytes], nonce: Nonce) -> bytes:
    """Join the parts of a response, with the nonce (field 5 in both variants) at the end."""
    return b"".join((*body, _nonce(nonce)))


def length_delimited(number: int, content: bytes) -> bytes:
    """Encode a length-delimited field: tag, length, content (Protocol Buffers encoding, wire type 2)."""
    return bytes((number << 3 | 2,)) + _varint(len(content)) + content


@lru_cache(maxsize=1024)
def _nonce(nonce: Nonce) -> bytes:
    return _text(_NONCE, nonce)


def _rejection(
    message: discovery_pb2.DiscoveryRequest | discovery_pb2.DeltaDiscoveryRequest,
) -> Rejection | None:
    if not message.HasField("error_detail"):
        return None
    text = message.error_detail.message
    if message.type_url in (SECRET, "") and _DUMP.search(text):  # a per-type stream may omit the type
        text = WITHHELD
    return Rejection(message.error_detail.code, text[:ERROR_LIMIT])


def _names(names: Iterable[str]) -> tuple[ResourceName, ...]:
    """Return the names, interned: streams keep them as long as they live, and many request the same."""
    return cast("tuple[ResourceName, ...]", tuple(map(sys.intern, names)))


def _versions(versions: Mapping[str, str]) -> dict[ResourceName, Version]:
    """Return the versions that a client holds, with interned strings, because many clients hold the same."""
    return {ResourceName(sys.intern(n)): Version(sys.intern(v)) for n, v in versions.items()}


def _node(message: discovery_pb2.DiscoveryRequest | discovery_pb2.DeltaDiscoveryRequest) -> Node | None:
    if not message.HasField("node"):
        return None
    node = message.node
    version = node.user_agent_build_version.version
    release = f"{version.major_number}.{version.minor_number}.{version.patch}"
    agent = f"{node.user_agent_name} {node.user_agent_version or release}".strip()
    return Node(node.id, node.cluster, agent if node.user_agent_name else "", node.ByteSize())


def _delta_resource(resource: Resource, *, body: bool) -> bytes:
    return b"".join(
        (
            _text(_RESOURCE_VERSION, resource.version),
            length_delimited(_RESOURCE_BODY, resource.body) if body else b"",
            _text(_RESOURCE_NAME, resource.name),
            _ttl(resource.ttl_seconds),
        )
    )


def _ttl(seconds: float | None) -> bytes:
    if seconds is None:
        return b""
    nanos = round(seconds * 1_000_000_000)
    duration = Duration(seconds=nanos // 1_000_000_000, nanos=nanos % 1_000_000_000)
    return length_delimited(_RESOURCE_TTL, duration.SerializeToString())


def _identifier(number: int, control_plane: str) -> bytes:
    return length_delimited(number, _text(1, control_plane)) if control_plane else b""


def _text(number: int, text: str) -> bytes:
    return length_delimited(number, text.encode()) if text else b""


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
