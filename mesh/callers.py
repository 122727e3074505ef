"""Who may call: an identity of the mesh; or, from outside it, whoever is at some address or has some name."""

from dataclasses import dataclass
from ipaddress import ip_network

from mesh.identity import ServiceIdentity
from mesh.names import IpAddress


@dataclass(frozen=True, slots=True, order=True)
class IpRange:
    """Whoever calls in plain text from an address of a network (`10.0.0.0/8`); raises ValueError for none.

    Nothing else is known of such a caller. Who shows a certificate is judged by that, wherever it is.
    """

    network: str

    def __post_init__(self) -> None:
        if str(ip_network(self.network)) != self.network:
            raise ValueError(f"{self.network!r} is not written as a network is: {ip_network(self.network)}")

    def __str__(self) -> str:
        return self.network


@dataclass(frozen=True, slots=True, order=True)
class AuthenticatedName:
    """Whoever shows a certificate of the mesh's roots for a name: a URI (`spiffe://...`), or a DNS name."""

    name: str

    @property
    def is_uri(self) -> bool:
        """Say whether the name is a URI."""
        return "://" in self.name

    def __str__(self) -> str:
        return self.name


Caller = ServiceIdentity | IpRange | AuthenticatedName
"""Whom a rule may admit."""


@dataclass(frozen=True, slots=True)
class Outsider:
    """A client outside the mesh: its address, and the name in its certificate, None where it shows none."""

    address: IpAddress
    name: AuthenticatedName | None = None


Client = ServiceIdentity | Outsider
"""Who calls."""
