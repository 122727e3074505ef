"""Permissions of a route configuration, and the interim listener for draining forbidden connections.

`xds.protocol.renewal` explains when this is needed.
"""

import enum
from functools import lru_cache
from typing import Final

from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message

from meshwright.sidecars.envoy.rules import rbac
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.config.rbac.v3 import rbac_pb2
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from xds.protocol.resources.resource import (
    EVERY_CONNECTION,
    Narrowing,
    Renewal,
    Resource,
    ResourceName,
    encode,
)

_KEPT: Final = 64
"""Number of cached results, because the streams of a group need the same one after another."""


class Transport(enum.StrEnum):
    """Kind of connections to a port, by the `transport_protocol` of the filter chains for them.

    Callers with TLS and callers in plain text have separate filter chains, so a change for one kind closes no
    connection of the other.
    """

    TLS = "tls"
    PLAIN = "raw_buffer"


Admitted = frozenset[tuple[bytes, bytes]]
"""Encoded pairs of principal and permission."""


@lru_cache(_KEPT)
def narrows(before: Resource, after: Resource) -> frozenset[str]:
    """Return the transports for which a route configuration admits less to the port than the one before.

    A pair of principal and permission is still admitted if any policy has the pair, or if the principal, or
    any principal, has every permission. A changed expression counts as another permission.
    """
    was, now, anything = _admitted(before), _admitted(after), _encoded(rbac_pb2.Permission(any=True))
    kept = {_transport(who) for who, _ in now}
    result = {_transport(who) for who, _ in was - now if (who, anything) not in now}
    if Transport.PLAIN not in kept:
        result.discard(Transport.PLAIN)  # the filter chain is gone, which drains it
    if (_encoded(rbac.anyone()), anything) in now:
        result.discard(Transport.TLS)
    return frozenset(result)


@lru_cache(_KEPT)
def interim(listener: Resource, narrowings: frozenset[Narrowing]) -> Resource:
    """Return a listener in which the filter chains for these routes and transports are renamed."""
    message = listener_pb2.Listener()
    Any.FromString(listener.body).Unpack(message)
    for chain in message.filter_chains:
        manager = hcm_pb2.HttpConnectionManager()
        result = (item.typed_config.Unpack(manager) for item in chain.filters)
        route = ResourceName(manager.rds.route_config_name) if any(result) else ResourceName("")
        transports = (chain.filter_chain_match.transport_protocol, EVERY_CONNECTION)
        if any((route, transport) in narrowings for transport in transports):
            # A chain of another name is a new one for Envoy, which then drains the connections of the old.
            chain.name += "_renewed"
    return encode(message, listener.references)


RENEWAL: Final = Renewal(narrows, interim)


def _admitted(resource: Resource) -> Admitted:
    message, per_route = route_pb2.RouteConfiguration(), http_rbac_pb2.RBACPerRoute()
    Any.FromString(resource.body).Unpack(message)
    message.typed_per_filter_config[rbac.HTTP_FILTER].Unpack(per_route)
    return frozenset(
        (_encoded(principal), _encoded(permission))
        for policy in per_route.rbac.rules.policies.values()
        for principal in policy.principals
        for permission in policy.permissions
    )


@lru_cache(rbac.REMEMBERED)
def _transport(principal: bytes) -> Transport:
    """Return how a caller arrives (`meshwright.sidecars.envoy.rules.rbac` makes the principals)."""
    result = rbac_pb2.Principal.FromString(principal)
    is_plain = any(item.not_id == rbac.anyone() for item in result.and_ids.ids)
    return Transport.PLAIN if is_plain else Transport.TLS


def _encoded(message: Message) -> bytes:
    # Protobuf leaves the order of map entries open, and equal messages must have equal bytes here.
    return message.SerializeToString(deterministic=True)
