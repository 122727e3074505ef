"""Who may call: an identity of the mesh; or, from outside it, whoever is at some address or has some name."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress

_LISTED: Final = 8
"""Networks, or names, of a caller that its text has."""


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
class EncryptedRange:
    """Whoever calls in TLS from an address of a network and is not of the mesh, whatever it shows.

    `server_names`: names (`a.example.org`, `*.example.org`) of which it must ask for one; empty is any.
    """

    network: IpRange
    server_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.network} in TLS{_asking(self.server_names)}"


@dataclass(frozen=True, slots=True, order=True)
class AuthenticatedName:
    """Whoever shows a certificate of the mesh's roots for a name: a URI (`spiffe://...`), or a DNS name.

    `networks`: where it must call from; empty is anywhere. `server_names`: see `EncryptedRange`.
    """

    name: str
    networks: tuple[IpRange, ...] = ()
    server_names: tuple[str, ...] = ()

    @property
    def is_uri(self) -> bool:
        """Say whether the name is a URI."""
        return "://" in self.name

    def __str__(self) -> str:
        networks = [str(each) for each in self.networks[:_LISTED]]
        where = f" from {_some(', ', networks, len(self.networks))}" if networks else ""
        return f"{self.name}{where}{_asking(self.server_names)}"


Caller = ServiceIdentity | IpRange | EncryptedRange | AuthenticatedName
"""Whom a rule may admit."""


@dataclass(frozen=True, slots=True)
class Outsider:
    """A client outside the mesh, at an address.

    `name` is that in its certificate of the mesh's roots, empty where it shows none. `tls`: whether it speaks
    TLS, as it does where it has a name; `server_name` is the one that it asks for there, lower case.
    """

    address: IpAddress
    name: str = ""
    tls: bool = False
    server_name: str = ""

    @property
    def is_encrypted(self) -> bool:
        """Say whether it speaks TLS."""
        return self.tls or bool(self.name)

    def __str__(self) -> str:
        how = f" as {self.name}" if self.name else " in TLS without a certificate" if self.tls else ""
        asking = f", asking for {self.server_name}" if self.server_name else ""
        return f"{self.address}{how}{asking}"


Client = ServiceIdentity | Outsider
"""Who calls."""


def _asking(names: tuple[str, ...]) -> str:
    return f" asking for {_some(' or ', names, len(names))}" if names else ""


def _some(between: str, words: Sequence[str], count: int) -> str:
    """Return words, the first LISTED of many: each of many callers may have all of them."""
    more = f" and {count - _LISTED} more" if count > _LISTED else ""
    return between.join(words[:_LISTED]) + more
