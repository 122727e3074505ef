"""Services that a group of proxies may call: a part common to all groups, and a part of its own.

In transparent interception the services of permissive namespaces do not depend on the caller, so all groups
with the same redirection and scope share one part. The services that TrafficTargets admit for the group's
identity are the other part. Two services at the same address and port cannot be distinguished: the healthier
one there wins, then the older one, then the first by name. If one is common and the other is the group's own,
the group gets a single part of its own with both. The same holds for a group with a Retry for a common
service, because others must not get its retries, and for one whose namespace has consumer routes for it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from catalog.policy.destinations import destinations, with_destinations
from catalog.policy.edge import edge_destinations
from catalog.policy.local_addresses import at_local_addresses
from catalog.policy.objects.retries import in_force, with_retries
from catalog.policy.objects.routing import Place
from catalog.policy.outbound import called_at, escaped_slashes, granted, reaches
from catalog.policy.route_table import places_behind, table_where
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ReachableServices
from catalog.relations.backends.endpoints import health_at
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.groups import ProxyGroup
from catalog.relations.permissive import open_services, relevant_client
from catalog.relations.route_reach import Side, consumed_services, mixed, relevant_caller, side_of
from catalog.relations.scope import in_scope, scope_of
from catalog.store.precedence import age
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.service import Scope, ServiceKey
from meshwright.mesh.workload import Edge, Explicit, Transparent


@dataclass(frozen=True, slots=True)
class _Offer:
    """Callable service ports of a client, with all addresses at which these ports are called."""

    services: tuple[OutboundService, ...] = ()
    places: frozenset[SocketAddress] = frozenset()


@derived
def reachable(view: View, group: ProxyGroup) -> tuple[ReachableServices, ...]:
    """Return the services that a group of proxies may call: the common part, if any, and its own.

    For example, in a permissive mesh without Retries all groups share one part, and have none of their own.
    The proxies of a gateway call no service by its address, and have the destinations of their routes alone.
    """
    match group.interception:
        case Explicit():
            result: tuple[ReachableServices, ...] = (at_local_addresses(view, group),)
        case Transparent(ipv6=ipv6):
            result = _transparent(view, group, ipv6)
        case Edge():
            result = (ReachableServices(destinations=edge_destinations(view, group)),)
    return tuple(part for part in result if part.services or part.destinations)


@derived
def open_to_all(view: View, scope: Scope, ipv6: bool) -> ReachableServices:
    """Return the services that every client with this `scope` may call; IPv6 addresses only if `ipv6`."""
    return replace(with_destinations(view, None, _open(view, scope, ipv6).services), common=True)


@derived
def _open(view: View, scope: Scope, ipv6: bool) -> _Offer:
    return _together(view, None, _common(view, scope), ipv6)


def _common(view: View, scope: Scope) -> Iterator[ServiceKey]:
    """Yield the services whose places are the same for every client with this scope."""
    differing = mixed(view).value()
    return (key for key in open_services(view) if key not in differing and in_scope(scope, key))


def derive_open(view: View, group: ProxyGroup) -> Iterator[None]:
    """Derive the common part for a group, if it is not cached; yield after each service.

    Otherwise the first group would derive thousands of services in one step, and block the event loop. An
    error is raised again by `reachable`.
    """
    match group.interception:
        case Explicit() | Edge():
            return
        case Transparent(ipv6=ipv6):
            scope = scope_of(view, group)
    if open_to_all.is_known(view, scope, ipv6):
        return
    for key in _common(view, scope):
        if not _offered_to_all.is_known(view, key, ipv6):
            # The result is not needed here, but its derived values stay in the graph for `open_to_all`.
            destinations(view, None, _offered_to_all(view, key, ipv6).services)
            yield None
    _open(view, scope, ipv6)
    yield None
    open_to_all(view, scope, ipv6)
    yield None


def _transparent(view: View, group: ProxyGroup, ipv6: bool) -> tuple[ReachableServices, ...]:
    client, scope = group.identity, scope_of(view, group)
    known = (service_key for service_key in in_force(view, client) if service_key in view.services)
    retried = any(
        in_scope(scope, service_key) and relevant_client(view, client, service_key) is None
        for service_key in known
    )
    mine = tuple(key for key in _own_services(view, client) if in_scope(scope, key))
    if not mine and not retried:
        return (open_to_all(view, scope, ipv6),)
    own = _together(view, client, mine, ipv6)
    # No common address: both parts can be used side by side, and the common one stays shared.
    if not retried and own.places.isdisjoint(_open(view, scope, ipv6).places):
        return (open_to_all(view, scope, ipv6), with_destinations(view, client, own.services))
    opened = (key for key in _common(view, scope) if key not in mine)
    return (with_destinations(view, client, _together(view, client, (*mine, *opened), ipv6).services),)


def _own_services(view: View, client: ServiceIdentity) -> Iterator[ServiceKey]:
    """Yield the services whose routes depend on a client or its namespace, without the others open to all."""
    consumed = consumed_services(view, client.namespace)
    return iter(dict.fromkeys((*granted(view, client), *sorted(mixed(view).value()), *consumed)))


def _together(view: View, client: ServiceIdentity | None, keys: Iterable[ServiceKey], ipv6: bool) -> _Offer:
    """Return the offers of services to a client, without addresses that belong to another service.

    The older service keeps an address and port, except against an endpoint of a headless service that is
    healthier there: the network may have reused the address of a former Pod for a Pod of another namespace.
    """
    offers: dict[ServiceKey, _Offer] = {}
    # The first holder of an address keeps it, so services are visited oldest first.
    holders: dict[SocketAddress, ServiceKey] = {}
    lost: dict[ServiceKey, set[SocketAddress]] = {}
    for key in sorted(keys, key=lambda service_key: (*age(view.services[service_key].created), service_key)):
        asked, side = _caller(view, client, key)
        if asked is None and side is None:
            offer = _offered_to_all(view, key, ipv6)
        else:
            offer = _offered(view, asked, key, ipv6, side)
        offers[key] = offer
        for where in holders.keys() & offer.places:
            older = holders[where]
            at = (where.address, where.port)
            loses = older if health_at(view, key, at) < health_at(view, older, at) else key
            lost.setdefault(loses, set()).add(where)
        holders.update(dict.fromkeys(offer.places - lost.get(key, set()), key))
    for key, places in lost.items():
        asked, side = _caller(view, client, key)
        offers[key] = _free(view, asked, key, ipv6, partial(reaches, view, asked), side, places)
    retried = {} if client is None else in_force(view, client)
    result = (
        with_retries(view, service, retried.get(key))
        for key in sorted(offers)
        for service in offers[key].services
    )
    return _Offer(tuple(result), frozenset(holders))


def _caller(
    view: View, client: ServiceIdentity | None, key: ServiceKey
) -> tuple[ServiceIdentity | None, Side]:
    """Return the client that matters for calls to a service, and its side (see `relations.route_reach`)."""
    if client is None:
        return None, None
    side = side_of(view, key, client.namespace)
    return relevant_caller(view, client, key, side), side


@derived
def _offered_to_all(view: View, key: ServiceKey, ipv6: bool) -> _Offer:
    return _offered(view, None, key, ipv6, None)


def _offered(view: View, client: ServiceIdentity | None, key: ServiceKey, ipv6: bool, side: Side) -> _Offer:
    """Return the offer of a service; one object for all clients of a side that reach the same places.

    A headless service is called at the endpoints that a client may call, so its offer differs per client.
    """
    if view.services[key].headless:
        return _free(view, client, key, ipv6, partial(reaches, view, client), side)
    reached = tuple(item for item in places_behind(view, key, side) if reaches(view, client, item))
    return _offered_where(view, key, ipv6, reached, side)


@derived
def _offered_where(view: View, key: ServiceKey, ipv6: bool, reached: tuple[Place, ...], side: Side) -> _Offer:
    return _free(view, None, key, ipv6, frozenset(reached).__contains__, side)


def _free(
    view: View,
    client: ServiceIdentity | None,
    key: ServiceKey,
    ipv6: bool,
    reached: Callable[[Place], bool],
    side: Side,
    taken: Collection[SocketAddress] = (),
) -> _Offer:
    """Return the offer of a service without `taken` addresses.

    Clients may call the places in `reached`.
    """
    here: set[SocketAddress] = set()
    outbound_services: dict[Port, OutboundService] = {}
    for port in sorted(view.services[key].ports, key=lambda service_port: service_port.port):
        entries = table_where(view, key, port, reached, side, as_called=view.services[key].headless)
        places = called_at(view, client, key, port) if entries else ()
        free = [
            place for place in places if place not in taken and place not in here and _is_led(place, ipv6)
        ]
        here.update(free)
        protocol = protocol_of(view, key, port)
        slashes = escaped_slashes(view, key, protocol)
        by_number: dict[Port, list[IpAddress]] = {}
        for address in free:
            by_number.setdefault(address.port, []).append(address.address)
        for number in sorted(by_number):
            addresses = tuple(by_number[number])
            offered = OutboundService(key, number, protocol, entries, addresses, escaped_slashes=slashes)
            # Two ports of a headless service may have endpoints with the same number: the first port wins.
            outbound_services.setdefault(number, offered)
    return _Offer(
        tuple(outbound_services[inbound_port] for inbound_port in sorted(outbound_services)), frozenset(here)
    )


def _is_led(where: SocketAddress, ipv6: bool) -> bool:
    """Return whether calls to an address are redirected to the proxy; for IPv6 only if `ipv6`."""
    return ipv6 or ":" not in where.address
