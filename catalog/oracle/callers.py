"""Whether a client is one that a rule admits: a part of the oracle, see `catalog.oracle.decide`."""

from ipaddress import ip_address, ip_network

from mesh.callers import AuthenticatedName, Caller, Client, IpRange, Outsider
from mesh.identity import ServiceIdentity
from mesh.names import TrustDomain


def is_caller(caller: Caller, client: Client | None, trust_domain: TrustDomain) -> bool:
    """Say whether a client is meant. A network means those in it that show no certificate."""
    match caller, client:
        case ServiceIdentity(), ServiceIdentity():
            return caller == client
        case AuthenticatedName(name), ServiceIdentity():
            return name == client.spiffe_id(trust_domain)
        case AuthenticatedName(), Outsider(_, shown):
            return caller == shown
        case IpRange(network), Outsider(address, None):
            return ip_address(address) in ip_network(network)
        case _:
            return False
