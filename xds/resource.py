"""Encoded resources: made once, shared by every stream that sends them."""

import hashlib
from dataclasses import dataclass, field
from typing import Final, NewType

from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message

TypeUrl = NewType("TypeUrl", str)
ResourceName = NewType("ResourceName", str)
Version = NewType("Version", str)

_PREFIX: Final = "type.googleapis.com/"
CLUSTER: Final = TypeUrl(_PREFIX + "envoy.config.cluster.v3.Cluster")
ENDPOINT: Final = TypeUrl(_PREFIX + "envoy.config.endpoint.v3.ClusterLoadAssignment")
SECRET: Final = TypeUrl(_PREFIX + "envoy.extensions.transport_sockets.tls.v3.Secret")
LISTENER: Final = TypeUrl(_PREFIX + "envoy.config.listener.v3.Listener")
ROUTE: Final = TypeUrl(_PREFIX + "envoy.config.route.v3.RouteConfiguration")

TYPES: Final = (CLUSTER, ENDPOINT, SECRET, LISTENER, ROUTE)
"""The types we know, in the order of a push (xDS protocol, "eventual consistency considerations")."""

_NAME_FIELDS: Final = {ENDPOINT: "cluster_name"}


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource, ready for the wire.

    `body` is the serialised `google.protobuf.Any`; `version` is a hash of it, so that equal content has
    an equal version in every process. `references` are the (type, name) pairs that must exist for this
    resource to work; they say nothing of the content and do not enter the version.
    """

    type_url: TypeUrl
    name: ResourceName
    version: Version
    body: bytes = field(repr=False, compare=False)
    references: frozenset[tuple[TypeUrl, ResourceName]] = field(
        default=frozenset(), repr=False, compare=False
    )


def encode(message: Message, references: frozenset[tuple[TypeUrl, ResourceName]] = frozenset()) -> Resource:
    """Encode a Listener, Cluster, RouteConfiguration, ClusterLoadAssignment or Secret, deterministically.

    The version is the first 16 hexadecimal digits of the body's SHA-256. Raises ValueError for a message
    without a name: it could be neither subscribed to nor removed.
    """
    type_url = TypeUrl(_PREFIX + message.DESCRIPTOR.full_name)
    name = getattr(message, _NAME_FIELDS.get(type_url, "name"))
    if not name:
        raise ValueError(f"a {message.DESCRIPTOR.full_name} without a name")
    body = Any(type_url=type_url, value=message.SerializeToString(deterministic=True)).SerializeToString(
        deterministic=True
    )
    version = Version(hashlib.sha256(body).hexdigest()[:16])
    return Resource(type_url, ResourceName(name), version, body, references)
