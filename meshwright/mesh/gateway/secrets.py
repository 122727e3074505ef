"""Secrets with the certificates of gateways."""

from dataclasses import dataclass, field
from typing import Final

from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.values.private_key import PrivateKey

_NO_KEY: Final = PrivateKey(b"")


@dataclass(frozen=True, slots=True)
class TlsSecret:
    """core Secret of type kubernetes.io/tls: a certificate chain (PEM) with its private key.

    `fault` says why a gateway cannot show the certificate; then chain and key are empty. A Secret of another
    type has a fault too, and its content is not kept.
    """

    key: PolicyKey
    chain_pem: bytes = field(default=b"", repr=False)
    private_key: PrivateKey = field(default=_NO_KEY, repr=False)
    fault: str = ""
