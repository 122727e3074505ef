"""The resources of an Envoy for a policy: all pieces, translated and sorted."""

from catalog.policy.values.proxy import ProxyPolicy
from meshwright.sidecars.contract.driver import Piece, each_piece
from meshwright.sidecars.envoy.pieces import parts
from xds.protocol.resources.resource import TYPES, Resource


def pieces(policy: ProxyPolicy) -> tuple[Piece, ...]:
    """Return the pieces of a policy one by one."""
    return tuple(each_piece(parts(policy)))


def resources(policy: ProxyPolicy) -> tuple[Resource, ...]:
    """Return the listeners, routes, clusters and endpoints of a policy, sorted by type and name."""
    order = {type_url: position for position, type_url in enumerate(TYPES)}
    made = (resource for piece in pieces(policy) for resource in piece.resources())
    return tuple(sorted(made, key=lambda item: (order[item.type_url], item.name)))
