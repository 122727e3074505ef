"""Match of a client with a caller in a rule: a part of the oracle, see `catalog.oracle.decide`."""

from collections.abc import Iterable
from ipaddress import ip_address, ip_network

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.policies.callers import (
    AuthenticatedName,
    Caller,
    Client,
    EncryptedRange,
    IpRange,
    Outsider,
)


def is_caller(caller: Caller, client: Client | None, trust_domain: TrustDomain) -> bool:
    """Return whether a rule's caller includes a client. An IpRange includes clients in plain text only.

    If a name also requires an address, a client of the mesh never matches, because the client's address is
    not known here.
    """
    match caller, client:
        case ServiceIdentity(), ServiceIdentity():
            return caller == client
        case ServiceIdentity(), Outsider():
            return caller.spiffe_id(trust_domain) == client.name
        case AuthenticatedName(name, (), ()), ServiceIdentity():
            return name == client.spiffe_id(trust_domain)
        case AuthenticatedName(name, networks, names), Outsider():
            if name != client.name or not _asks_for(names, client):
                return False  # before the networks, because many names may have the same many networks
            return not networks or any(_is_in(ip_range, client) for ip_range in networks)
        case EncryptedRange(network, names), Outsider():
            is_stranger = client.is_encrypted and not is_of_the_mesh(client, trust_domain)
            return is_stranger and _is_in(network, client) and _asks_for(names, client)
        case IpRange(), Outsider():
            return not client.is_encrypted and _is_in(caller, client)
        case _:
            return False


def is_of_the_mesh(client: Client | None, trust_domain: TrustDomain) -> bool:
    """Return whether a client has a certificate of the mesh for an identity, calling from anywhere."""
    match client:
        case ServiceIdentity():
            return True
        case Outsider():
            return client.name.startswith(f"spiffe://{trust_domain}/")
        case _:
            return False


def _is_in(network: IpRange, client: Outsider) -> bool:
    return ip_address(client.address) in ip_network(network.network)


def _asks_for(names: Iterable[str], client: Outsider) -> bool:
    """Return whether a client requests one of these server names, or one below a wildcard.

    Empty means any.
    """
    wanted = tuple(names)
    return not wanted or any(
        client.server_name == item or (item.startswith("*.") and client.server_name.endswith(item[1:]))
        for item in wanted
    )
