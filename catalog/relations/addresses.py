"""Virtual addresses: where a service is called that has no address of its own."""

import functools
import hashlib
from collections.abc import Collection, Mapping
from ipaddress import IPv4Address, IPv4Network
from types import MappingProxyType
from typing import Final

from catalog.store.view import IN_VIEW, View, services
from engine.derived import derived
from mesh.names import IpAddress
from mesh.service import Service, ServiceKey

VIRTUAL: Final = "virtual"
"""The entry of services that need a virtual address."""


def _addressing(_: ServiceKey, service: Service) -> tuple[str, ...]:
    return (VIRTUAL,) if service.cluster_ip is None and not service.headless else ()


def _cluster_ips(_: ServiceKey, service: Service) -> tuple[IpAddress, ...]:
    return () if service.cluster_ip is None else (service.cluster_ip,)


_by_addressing: Final = IN_VIEW.index("services by addressing", services, _addressing)
_by_cluster_ip: Final = IN_VIEW.index("services by address", services, _cluster_ips)


@derived
def virtual_address(view: View, key: ServiceKey) -> IpAddress | None:
    """Return a service's virtual address, None where it needs none; raise ValueError where none is left."""
    service = view.services.get(key)
    if service is None or service.cluster_ip is not None or service.headless:
        return None
    return _moved(view).value().get(key) or home(key, view.settings.virtual_addresses)


@derived
def moved(view: View) -> Mapping[ServiceKey, IpAddress]:
    """Return the services that are not at home because another one is there; raise ValueError as `allocate`.

    There are few, so that a service that comes or goes concerns no other.
    """
    network = view.settings.virtual_addresses
    allocated = allocate(_by_addressing(view).get(VIRTUAL, ()), network, sorted(_by_cluster_ip(view)))
    return {key: address for key, address in allocated.items() if address != home(key, network)}


_moved: Final = IN_VIEW.firewall(moved)


def allocate(
    services: Collection[ServiceKey], network: IPv4Network, taken: Collection[IpAddress] = ()
) -> Mapping[ServiceKey, IpAddress]:
    """Give each service an address of `network`: a hash of its name, then the next free one.

    The same services get the same addresses in every process, in whatever order they are given. Where two
    hash to one address, the first by key keeps it; so only such a pair can be moved by a third's coming or
    going. Network and broadcast address and those `taken` are left out. Raises ValueError where the network
    is too small for all.
    """
    used = {int(IPv4Address(address)) for address in taken if ":" not in address}
    first, size = int(network.network_address) + 1, network.num_addresses - 2
    inside = sum(first <= address < first + size for address in used)
    if len(services) > size - inside:
        raise ValueError(
            f"{network} has {max(size - inside, 0)} free addresses for {len(services)} services; "
            "choose a larger range"
        )
    allocated: dict[ServiceKey, IpAddress] = {}
    for key in sorted(services):
        offset = _hash(key) % size
        while first + offset in used:
            offset = (offset + 1) % size
        used.add(first + offset)
        allocated[key] = _address(first + offset)
    return MappingProxyType(allocated)


def home(key: ServiceKey, network: IPv4Network) -> IpAddress:
    """Return the address that a service has if nobody else is there; the network has room for one."""
    return _address(int(network.network_address) + 1 + _hash(key) % (network.num_addresses - 2))


@functools.lru_cache(maxsize=65536)
def _hash(key: ServiceKey) -> int:
    return int.from_bytes(hashlib.sha256(str(key).encode()).digest()[:8], "big")


@functools.lru_cache(maxsize=65536)
def _address(number: int) -> IpAddress:
    return IpAddress(str(IPv4Address(number)))
