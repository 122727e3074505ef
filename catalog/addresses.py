"""Virtual addresses: where a service is called that has no address of its own."""

import hashlib
from collections.abc import Collection, Mapping
from ipaddress import IPv4Address, IPv4Network
from types import MappingProxyType

from mesh.names import IpAddress
from mesh.service import ServiceKey


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
        digest = hashlib.sha256(str(key).encode()).digest()
        offset = int.from_bytes(digest[:8], "big") % size
        while first + offset in used:
            offset = (offset + 1) % size
        used.add(first + offset)
        allocated[key] = IpAddress(str(IPv4Address(first + offset)))
    return MappingProxyType(allocated)
