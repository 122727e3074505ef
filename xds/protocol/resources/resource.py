"""Encoded resources: encoded once, and shared by all sending streams."""

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
    "EVERY_CONNECTION",
    "LISTENER",
    "ROUTE",
    "SECRET",
    "TYPES",
    "Narrowing",
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

EVERY_CONNECTION: Final = ""
"""In a narrowing: connections of every kind."""

Narrowing = tuple[ResourceName, str]
"""A route configuration that permits less than before, and the kind of connections that this concerns."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """Functions of a route configuration's maker for renewal; both are pure.

    `narrows(before, after)` returns the kinds of connections for which `after` permits less; the maker names
    the kinds. `interim(listener, narrowings)` returns the listener with a difference at each reference to one
    of these route configurations for these connections.
    """

    narrows: Callable[["Resource", "Resource"], frozenset[str]]
    interim: Callable[["Resource", frozenset[Narrowing]], "Resource"]


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource, ready to send.

    - `kept` is the serialised `google.protobuf.Any`, perhaps packed (see `xds.protocol.resources.packing`);
      `body` returns the unpacked bytes.
    - `version` is a hash of the body, for example `3f2a9c41d07be856`, so equal content has the same version
      in every process.
    - `references` are the (type, name) pairs of needed resources, sorted.
    - An `on_demand` resource is sent only to clients requesting the name, and is not part of a wildcard
      (Envoy's on-demand discovery of clusters).
    - `ttl_seconds` is the time for which an incremental client may keep the resource without a heartbeat.
    - The body of a `secret` resource is never shown, and never packed.
    - `recipe` is for the maker of the resource, and may be used to make a variant.
    - `renewal`: see `xds.protocol.renewal`.

    The last six do not enter the version, but they count for equality, so equal resources can replace each
    other for every user. `is_seen_otherwise` compares only the part visible to clients.
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
        """Return the bytes of the encoded resource to send."""
        return unpacked(self.kept, self.type_url)


def encode(
    message: Message,
    refers_to: Collection[Reference] | None = None,
    *,
    on_demand: bool = False,
    ttl_seconds: float | None = None,
    renewal: Renewal | None = None,
) -> Resource:
    """Encode a resource message (for example a Listener) deterministically.

    The version is the first 16 hexadecimal digits of the body's SHA-256. A caller with known references
    passes them as `refers_to`, which saves the search. Raises ValueError for a message without a name,
    because requests and removals need a name.
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
    # Interned, as in requests (xds.protocol.wire), so that each name is in memory once.
    name = ResourceName(sys.intern(name))
    # A tuple, because a set of one takes four times as much; the names are interned like those of resources.
    needed = tuple(
        sorted((kind, ResourceName(sys.intern(resource_name))) for kind, resource_name in refers_to)
    )
    kept = body if secret else packed(body, type_url)
    return Resource(type_url, name, version, kept, needed, on_demand, ttl_seconds, secret, renewal=renewal)


def is_another_version(one: Resource | None, other: Resource | None) -> bool:
    """Return whether two resources of one type and name differ in content.

    None stands for a missing resource.
    """
    if one is None or other is None:
        return one is not other
    return one.version != other.version


def is_seen_otherwise(one: Resource | None, other: Resource | None) -> bool:
    """Return whether clients can see a difference between two resources of one type and name.

    Clients see the content, the membership in a wildcard, and the time to live. The other fields concern only
    the server and the maker.
    """
    if one is None or other is None:
        return one is not other
    return (one.version, one.on_demand, one.ttl_seconds) != (
        other.version,
        other.on_demand,
        other.ttl_seconds,
    )


def identities(resources: Iterable[Resource]) -> bytes:
    """Return the identities of objects, 8 bytes each: a fast key, valid as long as the objects are held."""
    return array("Q", map(id, resources)).tobytes()
