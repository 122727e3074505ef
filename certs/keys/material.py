"""Certificates as values; private keys are hidden from everything that prints."""

import hmac
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NoReturn, SupportsIndex, final

from meshwright.mesh.identity import ProxyName, ServiceIdentity

_HIDDEN: Final = "PrivateKey(<hidden>)"


@final
class PrivateKey:
    """A private key (PEM, PKCS#8, not encrypted), with bytes available through `reveal()` alone.

    The class is not a dataclass, because `dataclasses.asdict` would copy the bytes.
    """

    __slots__ = ("_pem",)
    _pem: bytes

    def __init__(self, pem: bytes) -> None:
        object.__setattr__(self, "_pem", pem)

    def reveal(self) -> bytes:
        """Return the key's PEM. Allowed only to write a 0600 file, an SDS secret or a child's pipe."""
        return self._pem

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a PrivateKey does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a PrivateKey does not change")

    def __repr__(self) -> str:
        return _HIDDEN

    def __str__(self) -> str:
        return _HIDDEN

    def __format__(self, format_spec: str) -> str:
        return _HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrivateKey) and hmac.compare_digest(self._pem, other._pem)

    def __hash__(self) -> int:
        return hash(self._pem)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a PrivateKey is not pickled or copied")


@dataclass(frozen=True, slots=True)
class ServiceCertificate:
    """Certificate shown by the sidecars of one service identity to peers: a SPIFFE URI and DNS names.

    `chain_pem` is the certificate, then any intermediates, without the root. `serial` is lower-case
    hexadecimal; `dns_names` are sorted.
    """

    identity: ServiceIdentity
    serial: str
    not_before: datetime
    not_after: datetime
    dns_names: tuple[str, ...]
    chain_pem: bytes = field(repr=False)
    key: PrivateKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class ProxyCertificate:
    """Certificate shown by one sidecar to the control plane; the common name is `str(name)`."""

    name: ProxyName
    serial: str
    not_after: datetime
    chain_pem: bytes = field(repr=False)
    key: PrivateKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class SignedProxy:
    """Certificate of a proxy; the key was made by the proxy's agent, and never leaves the agent."""

    name: ProxyName
    serial: str
    not_before: datetime
    not_after: datetime
    chain_pem: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """Certificate shown by the control plane to sidecars; names and addresses are sorted."""

    serial: str
    not_before: datetime
    not_after: datetime
    dns_names: tuple[str, ...]
    ip_addresses: tuple[str, ...]
    chain_pem: bytes = field(repr=False)
    key: PrivateKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """Fields of a peer's certificate; `common_name` is empty unless there is exactly one."""

    common_name: str
    serial: str
    not_before: datetime
    not_after: datetime
    uri_sans: tuple[str, ...]
    client_auth: bool
