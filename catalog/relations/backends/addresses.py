"""Virtual addresses of services without an address of their own.

Such a service has an IPv4 address and an IPv6 address with the same last 32 bits, so both are unique.
"""

import functools
import hashlib
import heapq
from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from types import MappingProxyType
from typing import Final

from catalog.store.precedence import age
from catalog.store.view import IN_VIEW, View, services
from meshwright.engine.derived import derived
from meshwright.mesh.names import IpAddress
from meshwright.mesh.service import Service, ServiceKey


def called_addresses(view: View, service: Service) -> tuple[IpAddress, ...]:
    """Return the addresses of a service, own or virtual; empty for a headless service.

    Raises ValueError like `virtual_address`.
    """
    addresses = own_addresses(view, service)
    if service.cluster_ip is not None or not addresses:
        return addresses
    # Only a virtual address has a twin in IPv6; addresses of a Service are called as configured.
    return (*addresses, in_ipv6(addresses[0], view.settings.virtual_addresses_ipv6))


def own_addresses(view: View, service: Service) -> tuple[IpAddress, ...]:
    """Return the addresses of a service without virtual IPv6 addresses."""
    address = service.cluster_ip or virtual_address(view, service.key)
    return () if address is None else (address, *service.other_addresses)


@functools.lru_cache(maxsize=65536)
def in_ipv6(virtual: IpAddress, network: IPv6Network) -> IpAddress:
    """Return the virtual IPv6 address for a virtual IPv4 address; the network has 32 free bits.

    For example, `240.0.0.1` in `2001:2::/96` becomes `2001:2::f000:1`.
    """
    return IpAddress(str(IPv6Address(int(network.network_address) + int(IPv4Address(virtual)))))


def _own(view: View, key: ServiceKey) -> Collection[IpAddress]:
    """Return the configured addresses of a service, or its home address; empty if none is needed."""
    service, network = view.services[key], view.settings.virtual_addresses
    if service.cluster_ip is not None:
        return (service.cluster_ip, *service.other_addresses)
    return (home(key, network),) if _is_virtual(service) and _size(network) > 0 else ()


by_own_address: Final = IN_VIEW.derived_index("services by own address", services, _own)


@derived
def virtual_address(view: View, key: ServiceKey) -> IpAddress | None:
    """Return a service's virtual address, or `None` if none is needed; raise ValueError if none is left.

    The address is a hash of the name (the home), or the next free address, so equal services have equal
    addresses in every process. For example, `shop/cart` may have `240.183.20.7`. If two services have one
    home, the older keeps it, then the first by key; therefore only such a pair can move when a third service
    appears or disappears. The network's own and broadcast address and configured addresses are never used.
    """
    service = view.services.get(key)
    if service is None or not _is_virtual(service):
        return None
    return _moved(view).get(key) or home(key, view.settings.virtual_addresses)


@derived
def moved(view: View) -> Mapping[ServiceKey, IpAddress]:
    """Return the services that are not at home because another service is there.

    Raises ValueError if the network is too small.
    """
    network = view.settings.virtual_addresses
    _check(view, network)
    return MappingProxyType(dict(_placed(view, network)))


_moved: Final = IN_VIEW.mapping_firewall(moved)
"""A firewall read by key: a change only concerns services that are, or were, in the mapping."""


def _placed(view: View, network: IPv4Network) -> Iterator[tuple[ServiceKey, IpAddress]]:
    """Yield the services without their home, each with its address, oldest first.

    Only services with a shared home are examined, and those whose home was given to one of these.
    """
    at, placed = by_own_address(view), set[IpAddress]()
    virtual = (key for address in at.several() for key in at[address] if _is_virtual(view.services[key]))
    waiting = [_by_age(view, key) for key in virtual]
    heapq.heapify(waiting)
    while waiting:
        _, _, key = heapq.heappop(waiting)
        address = there = home(key, network)
        # Oldest service first, so the result does not depend on the order of changes.
        while there in placed or any(_holds(view, service_key, key) for service_key in at.get(there, ())):
            there = _next(there, network)
        placed.add(there)
        if there != address:
            yield key, there
            # The address was the home of a single service, which must now look for another one.
            if len(alone := at.get(there, ())) == 1:
                heapq.heappush(waiting, _by_age(view, alone[0]))


def _holds(view: View, other: ServiceKey, key: ServiceKey) -> bool:
    """Return whether the service `other` keeps an address that the service `key` also wants."""
    return _by_age(view, other) < _by_age(view, key) or not _is_virtual(view.services[other])


def _by_age(view: View, key: ServiceKey) -> tuple[bool, str, ServiceKey]:
    return (*age(view.services[key].created), key)


def _check(view: View, network: IPv4Network) -> None:
    size, every = _size(network), view.services
    if len(every) <= size:
        return
    first = int(network.network_address) + 1
    own = {
        ip
        for service in every.values()
        for ip in (service.cluster_ip, *service.other_addresses)
        if ip is not None
    }
    given = {address for address in own if ":" not in address}
    inside = sum(first <= int(IPv4Address(address)) < first + size for address in given)
    if (count := sum(map(_is_virtual, every.values()))) > size - inside:
        raise ValueError(
            f"{network} has {max(size - inside, 0)} free addresses for {count} services; "
            "choose a larger range"
        )


def home(key: ServiceKey, network: IPv4Network) -> IpAddress:
    """Return the preferred virtual address of a service; the network must have room for one."""
    return _address(int(network.network_address) + 1 + _hash(key) % _size(network))


def _next(address: IpAddress, network: IPv4Network) -> IpAddress:
    """Return the next address of a network, cyclically."""
    first = int(network.network_address) + 1
    return _address(first + (int(IPv4Address(address)) + 1 - first) % _size(network))


def _size(network: IPv4Network) -> int:
    # Without the network's own address and the broadcast address.
    return network.num_addresses - 2


def _is_virtual(service: Service) -> bool:
    return service.cluster_ip is None and not service.headless


@functools.lru_cache(maxsize=65536)
def _hash(key: ServiceKey) -> int:
    # Python's own hash of a text differs in each process, but equal services must have equal addresses.
    return int.from_bytes(hashlib.sha256(str(key).encode()).digest()[:8], "big")


@functools.lru_cache(maxsize=65536)
def _address(number: int) -> IpAddress:
    return IpAddress(str(IPv4Address(number)))
