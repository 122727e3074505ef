"""Parsing of certificates: the fields of a leaf, and the check for a chain to a root."""

import contextlib
import hashlib
import itertools
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.contract import Names, Usage
from certs.keys.profile import common_name
from certs.keys.proof_of_possession import written
from certs.keys.serial import serial_text
from meshwright.mesh.names import TrustDomain
from meshwright.tls.pem import UNREADABLE, first_in, loaded

_SPIFFE: Final = "spiffe://"
_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


@dataclass(frozen=True, slots=True)
class Leaf:
    """The fields of a certificate used by Meshwright.

    `names.common_name` is empty unless there is exactly one.
    """

    names: Names
    serial: str
    not_before: datetime
    not_after: datetime
    client_auth: bool
    server_auth: bool

    def serves(self, usage: Usage) -> bool:
        """Return whether the extended key usage is exactly the one of `usage`.

        For a gateway clientAuth is enough and serverAuth is allowed, because a role of Vault sets the same
        usages in all certificates.
        """
        if usage is Usage.GATEWAY:
            return self.client_auth
        return (self.client_auth, self.server_auth) == (usage.client_auth, usage.server_auth)


def read_leaf(pem: bytes) -> Leaf:
    """Parse the first certificate of a PEM text. Raises ValueError without a well-formed certificate."""
    return leaf_of(first_in(pem))


def leaf_of(certificate: x509.Certificate) -> Leaf:
    """Return the fields of a certificate. Raises ValueError for malformed extensions."""
    try:
        names = _names(certificate)
        usages = _extension(certificate, x509.ExtendedKeyUsage)
    except UNREADABLE as error:
        raise ValueError(str(error)) from error
    return Leaf(
        names,
        serial_text(certificate.serial_number),
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
        client_auth=usages is not None and ExtendedKeyUsageOID.CLIENT_AUTH in usages,
        server_auth=usages is not None and ExtendedKeyUsageOID.SERVER_AUTH in usages,
    )


def serial_and_end(pem: bytes) -> tuple[str, datetime]:
    """Return serial and end of validity of the first certificate of a PEM text, without further parsing.

    Raises ValueError without a certificate.
    """
    return _serial_and_end(first_in(pem))


def roots(bundle_pem: bytes) -> tuple[tuple[str, datetime], ...]:
    """Return serial and end of validity of each root of a bundle. Raises ValueError for malformed PEM."""
    return tuple(map(_serial_and_end, loaded(bundle_pem)))


def trust_domains(bundle_pem: bytes) -> tuple[TrustDomain, ...]:
    """Return the trust domains in the names of roots (SPIFFE X509-SVID, section 2), sorted.

    Roots without a trust domain, or with malformed names, are ignored. Raises ValueError for malformed PEM.

    For example, a root with the URI `spiffe://cluster.local` gives `("cluster.local",)`.
    """
    result = set[TrustDomain]()
    for certificate in loaded(bundle_pem):
        with contextlib.suppress(*UNREADABLE):
            uris = _names(certificate).uris
            parts = (uri.removeprefix(_SPIFFE) for uri in uris if uri.startswith(_SPIFFE))
            result.update(TrustDomain(part.partition("/")[0]) for part in parts)
    return tuple(sorted(result))


def fingerprint_of(certificate: x509.Certificate) -> str:
    """Return the SHA-256 of a certificate's public key (SubjectPublicKeyInfo), in hexadecimal."""
    return hashlib.sha256(written(certificate.public_key())).hexdigest()


def is_signed_by_bundle(chain_pem: bytes, bundle_pem: bytes) -> bool:
    """Return whether each certificate of a chain is signed by the next, and the last by a root of the bundle.

    Only signatures and names are checked, not validity. Raises ValueError for malformed PEM.
    """
    chain, roots = loaded(chain_pem), loaded(bundle_pem)
    links = itertools.pairwise(chain)
    return all(signed_by(lower, upper) for lower, upper in links) and any(
        signed_by(chain[-1], root) for root in roots
    )


def signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Return whether a certificate has the issuer's name and signature; False for unsupported keys."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, UnsupportedAlgorithm, TypeError, ValueError):
        return False
    return True


def _serial_and_end(certificate: x509.Certificate) -> tuple[str, datetime]:
    return serial_text(certificate.serial_number), certificate.not_valid_after_utc


def _names(certificate: x509.Certificate) -> Names:
    sans = _extension(certificate, x509.SubjectAlternativeName)
    if sans is None:
        return Names(common_name(certificate))
    return Names(
        common_name(certificate),
        uris=tuple(sorted(sans.get_values_for_type(x509.UniformResourceIdentifier))),
        dns_names=tuple(sorted(sans.get_values_for_type(x509.DNSName))),
        ip_addresses=tuple(sorted(map(str, sans.get_values_for_type(x509.IPAddress)))),
    )


def _extension(certificate: x509.Certificate, kind: type[_Extension]) -> _Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
