"""Addresses of the mesh's services without any permitted call of a workload.

With passthrough, unknown destinations go out of the mesh, and so does traffic that an Egress allows. These
addresses are closed instead: sidecars there refuse plain text, or workloads are missing, and the caller would
wait without an answer.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.proxy import ReachableServices
from catalog.relations.backends.addresses import called_addresses
from catalog.relations.membership import belongs_to_the_mesh
from catalog.relations.outside import services_by_port
from catalog.store import mesh_wide
from catalog.store.view import IN_VIEW, View
from meshwright.engine.derived import derived
from meshwright.mesh.names import Port
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.values.cached_hash import SharedTuple


def closed(view: View, parts: Iterable[ReachableServices]) -> SharedTuple[SocketAddress]:
    """Return the addresses of the mesh's services that are in none of these parts, sorted."""
    first, *others = *parts, ReachableServices()
    shared_tuple = _beside(view, first)
    opened = {place for services in others for place in _places(services)}
    return (
        SharedTuple(address for address in shared_tuple if address not in opened) if opened else shared_tuple
    )


def closed_at(
    view: View, parts: Iterable[ReachableServices], ports: frozenset[Port]
) -> SharedTuple[SocketAddress]:
    """Return the addresses at some ports that are in no part, with or without passthrough."""
    result = [address for port in sorted(ports) for address in _at(view, port)]
    opened = {address for part in parts for address in _opened(view, part, ports)} if result else set()
    return SharedTuple(address for address in result if address not in opened)


@derived
def _opened(view: View, part: ReachableServices, ports: frozenset[Port]) -> frozenset[SocketAddress]:
    """Return the addresses of a part of the reachable services at some ports."""
    del view
    return frozenset(place for place in _places(part) if place.port in ports)


@derived
def _at(view: View, port: Port) -> tuple[SocketAddress, ...]:
    result = {address for key in services_by_port(view).get(port, ()) for address in _addresses(view, key)}
    return tuple(sorted(ip_address for ip_address in result if ip_address.port == port))


@derived
def _beside(view: View, part: ReachableServices) -> SharedTuple[SocketAddress]:
    """Return the mesh's addresses that are not in this part, which many groups may share."""
    opened = set(_places(part))
    return SharedTuple(address for address in _all(view).value() if address not in opened)


def _places(part: ReachableServices) -> Iterator[SocketAddress]:
    return (
        SocketAddress(address, service.port) for service in part.services for address in service.addresses
    )


@derived
def addresses(view: View) -> tuple[SocketAddress, ...]:
    """Return the addresses of the mesh's services, sorted; empty without `enableEgress`, when unused."""
    # Without passthrough only some ports lead out, and `closed_at` finds the addresses at these ports.
    if not mesh_wide.egress(view).value():
        return ()
    return tuple(sorted({address for key in view.services for address in _addresses(view, key)}))


_all: Final = IN_VIEW.firewall(addresses)


@derived
def _addresses(view: View, key: ServiceKey) -> tuple[SocketAddress, ...]:
    """Return the addresses of a service of the mesh; empty for any other, and for a headless one.

    Endpoints of a headless service are called by their own addresses, and may accept plain text.
    """
    service = view.services[key]
    addresses = called_addresses(view, service)
    if not addresses or not belongs_to_the_mesh(view, key):
        return ()
    return tuple(SocketAddress(address, port.port) for address in addresses for port in service.ports)
