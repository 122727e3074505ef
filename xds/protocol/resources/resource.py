"""Encoded resources: made once, shared by every stream that sends them."""

import hashlib
import sys
from array import array
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message

from xds.protocol.resources.packing import packed, unpacked
from xds.protocol.resources.references import references
from xds.protocol.type_urls import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    PREFIX,
    ROUTE,
    SECRET,
    TYPES,
    Reference,
    ResourceName,
    TypeUrl,
    Version,
)

__all__ = [
    "CLUSTER",
    "ENDPOINT",
    "LISTENER",
    "ROUTE",
    "SECRET",
    "TYPES",
    "Reference",
    "Renewal",
    "Resource",
    "ResourceName",
    "TypeUrl",
    "Version",
    "encode",
    "identities",
    "is_another_version",
    "is_seen_otherwise",
]

_NAME_FIELDS: Final = {ENDPOINT: "cluster_name"}


@dataclass(frozen=True, slots=True)
class Renewal:
    """What the maker of a route configuration knows of it; both functions are pure.

    `narrows(before, after)` says whether something is no longer permitted. `interim(listener, routes)`
    returns the listener in a form that differs wherever it refers to one of these route configurations.
    """

    narrows: Callable[["Resource", "Resource"], bool]
    interim: Callable[["Resource", frozenset[ResourceName]], "Resource"]


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource, ready for the wire.

    `body` is the serialised `google.protobuf.Any`, and `kept` what stays of it (see
    `xds.protocol.resources.packing`);
    `version` is a hash of the body, so that equal content has an equal version in every process. `references`
    are the (type, name) pairs that must exist for this resource to work, sorted. An `on_demand` resource is
    sent to who asks for its name, and is not part of a wildcard (Envoy's on-demand discovery of clusters).
    `ttl_seconds` is how long an incremental client may keep it without hearing of it; the server sends word
    in time. The body of a `secret` one is never shown nor kept. `recipe` is for whoever made it, to make it
    otherwise; `renewal`: see `xds.protocol.renewal`.
    None of the six enters the version. Resources are equal where these are as well, so that one may stand for
    the other whoever asks it for what; what clients see of that is `is_seen_otherwise`.
    """

    type_url: TypeUrl
    name: ResourceName
    version: Version
    kept: bytes = field(repr=False, compare=False)
    references: tuple[Reference, ...] = field(default=(), repr=False, hash=False)
    on_demand: bool = field(default=False, hash=False)
    ttl_seconds: float | None = field(default=None, hash=False)
    secret: bool = field(default=False, hash=False)
    recipe: object = field(default=None, repr=False, hash=False)
    renewal: Renewal | None = field(default=None, repr=False, hash=False)

    @property
    def body(self) -> bytes:
        """The bytes that are sent."""
        return unpacked(self.kept, self.type_url)


def encode(
    message: Message,
    refers_to: Collection[Reference] | None = None,
    *,
    on_demand: bool = False,
    ttl_seconds: float | None = None,
    renewal: Renewal | None = None,
) -> Resource:
    """Encode a resource message (Listener, Cluster, ...) deterministically.

    The version is the first 16 hexadecimal digits of the body's SHA-256. `refers_to` spares the search for
    references to who knows them. Raises ValueError for a message without a name: it could be neither
    subscribed to nor removed.
    """
    type_url = TypeUrl(sys.intern(PREFIX + message.DESCRIPTOR.full_name))
    name = getattr(message, _NAME_FIELDS.get(type_url, "name"))
    if not name:
        raise ValueError(f"a {message.DESCRIPTOR.full_name} without a name")
    if refers_to is None:
        refers_to = () if type_url in (ENDPOINT, SECRET) else references(message)
    body = Any(type_url=type_url, value=message.SerializeToString(deterministic=True)).SerializeToString(
        deterministic=True
    )
    version = Version(hashlib.sha256(body).hexdigest()[:16])
    secret = type_url == SECRET
    # The very string that requests for it hold (xds.protocol.wire): it is in memory once.
    name = ResourceName(sys.intern(name))
    # A set of one takes what four such do, and each name is that of a resource, which is in memory as well.
    needed = tuple(sorted((kind, ResourceName(sys.intern(each))) for kind, each in refers_to))
    kept = body if secret else packed(body, type_url)
    return Resource(type_url, name, version, kept, needed, on_demand, ttl_seconds, secret, renewal=renewal)


def is_another_version(one: Resource | None, other: Resource | None) -> bool:
    """Say whether a resource (None: none) has another content than another of its type and name."""
    if one is None or other is None:
        return one is not other
    return one.version != other.version


def is_seen_otherwise(one: Resource | None, other: Resource | None) -> bool:
    """Say whether it matters to a client which of two of one type and name there is.

    That is the content, whether a wildcard shows it, and for how long it may be kept: the rest is the
    server's and its maker's.
    """
    if one is None or other is None:
        return one is not other
    return (one.version, one.on_demand, one.ttl_seconds) != (
        other.version,
        other.on_demand,
        other.ttl_seconds,
    )


def identities(resources: Iterable[Resource]) -> bytes:
    """Return which very objects these are, in eight bytes each: a quick key for as long as they are held."""
    return array("Q", map(id, resources)).tobytes()
