"""Secrets with the certificates of gateways."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.values.private_key import PrivateKey

_NO_KEY: Final = PrivateKey(b"")


@dataclass(frozen=True, slots=True)
class EdgeCertificate:
    """Public facts of a certificate that a gateway shows: DNS names in lower case, and the time of validity.

    Both ends of the time are included (RFC 5280, 4.1.2.5).
    """

    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime

    @property
    def alarm_at(self) -> datetime:
        """The time from which less than a quarter of the life is left.

        The alarm for service certificates has the same share. It fits certificates of 90 days, which ACME
        clients renew after two thirds of their life, and those of a few days.
        """
        return self.not_before + (self.not_after - self.not_before) * 0.75


@dataclass(frozen=True, slots=True)
class TlsSecret:
    """core Secret of type kubernetes.io/tls: a certificate chain (PEM) with its private key.

    `fault` says why a gateway cannot show the certificate; then chain and key are empty. A Secret of another
    type has a fault too, and its content is not kept. `certificate` has the facts of the first certificate of
    the chain.
    """

    key: PolicyKey
    chain_pem: bytes = field(default=b"", repr=False)
    private_key: PrivateKey = field(default=_NO_KEY, repr=False)
    fault: str = ""
    # Follows from the chain, so equal chains have equal facts.
    certificate: EdgeCertificate | None = field(default=None, compare=False, repr=False)
