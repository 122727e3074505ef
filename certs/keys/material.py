"""Certificates as values; private keys are hidden from everything that prints."""

from dataclasses import dataclass, field
from datetime import datetime

from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.values.private_key import PrivateKey

__all__ = [
    "PeerCertificate",
    "PrivateKey",
    "ProxyCertificate",
    "ServerCertificate",
    "ServiceCertificate",
    "SignedProxy",
]


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
