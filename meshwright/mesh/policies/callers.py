"""Callers in policies: an identity of the mesh, or a client outside by address or name."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress

_LISTED: Final = 8
"""Number of networks or names in the text of a caller."""


@dataclass(frozen=True, slots=True, order=True)
class IpRange:
    """Clients in plain text from a network (`10.0.0.0/8`). Raises ValueError for anything else.

    For a client with a certificate, the certificate decides, not the address.
    """

    network: str

    def __post_init__(self) -> None:
        # One spelling per network, because ranges are compared and sorted as texts.
        if str(ip_network(self.network)) != self.network:
            raise ValueError(f"{self.network!r} is not written as a network is: {ip_network(self.network)}")

    def __str__(self) -> str:
        return self.network


@dataclass(frozen=True, slots=True, order=True)
class EncryptedRange:
    """Clients in TLS from a network outside the mesh, whatever certificate they show.

    `server_names` are the names (`a.example.org`, `*.example.org`) of which the client must request one;
    empty for any.
    """

    network: IpRange
    server_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.network} in TLS{_asking(self.server_names)}"


@dataclass(frozen=True, slots=True, order=True)
class AuthenticatedName:
    """Clients with a certificate of the mesh's roots for a name: a URI (`spiffe://...`), or a DNS name.

    `networks` are the networks they must be in, empty for anywhere. `server_names` as in `EncryptedRange`.
    """

    name: str
    networks: tuple[IpRange, ...] = ()
    server_names: tuple[str, ...] = ()

    @property
    def is_uri(self) -> bool:
        """Return whether the name in the certificate is a URI, not a DNS name."""
        return "://" in self.name

    def __str__(self) -> str:
        networks = [str(network) for network in self.networks[:_LISTED]]
        where = f" from {_some(', ', networks, len(self.networks))}" if networks else ""
        return f"{self.name}{where}{_asking(self.server_names)}"


Caller = ServiceIdentity | IpRange | EncryptedRange | AuthenticatedName
"""Callers that a rule may admit."""


@dataclass(frozen=True, slots=True)
class Outsider:
    """A client outside the mesh, at an address.

    `name` is the name in a certificate of the mesh's roots, empty without one, for example
    `spiffe://cluster.local/ns/shop/sa/cart`. `tls` is True for a client in TLS, always so with a name.
    `server_name` is the requested name in TLS, in lower case.
    """

    address: IpAddress
    name: str = ""
    tls: bool = False
    server_name: str = ""

    @property
    def is_encrypted(self) -> bool:
        """Return whether the client outside the mesh uses TLS."""
        return self.tls or bool(self.name)

    def __str__(self) -> str:
        how = f" as {self.name}" if self.name else " in TLS without a certificate" if self.tls else ""
        asking = f", asking for {self.server_name}" if self.server_name else ""
        return f"{self.address}{how}{asking}"


Client = ServiceIdentity | Outsider
"""The client of a call."""


def _asking(names: tuple[str, ...]) -> str:
    return f" asking for {_some(' or ', names, len(names))}" if names else ""


def _some(between: str, words: Sequence[str], count: int) -> str:
    """Return words, but only the first _LISTED of many, because each of many callers may have all of them."""
    more = f" and {count - _LISTED} more" if count > _LISTED else ""
    return between.join(words[:_LISTED]) + more
