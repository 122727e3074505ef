"""The chain from a signing CA up to a root: found and verified, with the time as an argument."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID

from certs.keys.bundle import TrustBundle
from certs.keys.leaf import signed_by
from meshwright.tls.pem import as_pem

CURVES: Final = frozenset({"secp256r1", "secp384r1", "secp521r1"})
"""Curves allowed for a CA's key; BoringSSL does not verify signatures on others."""

_TLS: Final = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH}
_UNDERSTOOD: Final = frozenset(
    {
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.CERTIFICATE_POLICIES,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.INHIBIT_ANY_POLICY,
        ExtensionOID.KEY_USAGE,
        ExtensionOID.NAME_CONSTRAINTS,
        ExtensionOID.POLICY_CONSTRAINTS,
        ExtensionOID.POLICY_MAPPINGS,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
    }
)
"""Critical extensions supported by BoringSSL and OpenSSL; both must refuse any other."""


@dataclass(frozen=True, slots=True)
class IssuerChain:
    """The chain from a signing CA to a root.

    `chain_pem` accompanies each signed certificate: the CA and the intermediates above it, without the root,
    so the text is empty for a root. The whole chain is valid until `not_after`.
    """

    chain_pem: bytes = field(repr=False)
    roots: TrustBundle
    not_after: datetime


def above(
    signer: x509.Certificate,
    others: Iterable[x509.Certificate],
    roots: Sequence[x509.Certificate],
    now: datetime,
    *,
    signs_proxies: bool = False,
) -> IssuerChain:
    """Return the chain from a CA to one of the roots, over `others`; without roots the CA must be a root.

    Raises ValueError, with a sentence about the faulty certificate, if verifiers would not accept the chain.
    Checked are signatures, names, validity, key types, the CA flag and path lengths (RFC 5280, 6.1),
    unsupported critical extensions (4.2), and an extended key usage that would exclude TLS clients or servers
    below. With `signs_proxies` the chain must not have name constraints, because proxy certificates do not
    have alternative names.
    """
    _check(signer, 0, now)
    path, between = [signer], list(others)
    while not signed_by(path[-1], path[-1]):
        # Roots first: of a cross-signed CA both certificates match, and the path should end at the trusted
        # one. A repeated CA means that CAs have signed each other, and the search would never end.
        upper = next(
            (certificate for certificate in (*roots, *between) if signed_by(path[-1], certificate)), None
        )
        if upper is None or upper in path:
            missing = (
                "so it is not a root; give the root too"
                if not roots
                else ("but the given certificates have not signed it; add the missing intermediate or root")
            )
            raise ValueError(f"{_named(path[-1])} is signed by {_issuer(path[-1])}, {missing}")
        _check(upper, len(path), now)
        path.append(upper)
    if roots and path[-1] not in roots:
        raise ValueError(f"its chain ends at {_named(path[-1])}, which is not one of the given roots")
    for certificate in path if signs_proxies else ():
        if _has(certificate, x509.NameConstraints):
            raise ValueError(
                f"{_named(certificate)} has name constraints: BoringSSL, which Envoy and gRPC "
                "use, then refuses certificates of proxies, because they lack alternative names; use a CA "
                "without name constraints"
            )
    trusted = TrustBundle.from_pems([as_pem(roots or [signer])])
    ends = min(certificate.not_valid_after_utc for certificate in path)
    return IssuerChain(as_pem(path[:-1]), trusted, ends)


def _check(certificate: x509.Certificate, below: int, now: datetime) -> None:
    """Raise ValueError unless the certificate is a valid CA that may have `below` CAs below it."""
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension):
        raise ValueError(
            f"{_named(certificate)} is not a CA certificate: the basic constraints or the key "
            "usage are missing"
        ) from None
    if not (constraints.ca and usage.key_cert_sign):
        raise ValueError(f"{_named(certificate)} is not a CA certificate: it may not sign other certificates")
    _check_use(certificate)
    if constraints.path_length is not None and constraints.path_length < below:
        raise ValueError(
            f"{_named(certificate)} allows {constraints.path_length} CAs below it (its "
            f"path length), but there are {below}"
        )
    key = certificate.public_key()
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name not in CURVES:
        raise ValueError(
            f"{_named(certificate)} has an ECDSA key on the curve {key.curve.name}, which "
            "Envoy does not support; the curve must be P-256, P-384 or P-521"
        )
    if now > certificate.not_valid_after_utc:
        raise ValueError(f"{_named(certificate)} expired at {certificate.not_valid_after_utc}")
    if now < certificate.not_valid_before_utc:
        raise ValueError(f"{_named(certificate)} is not valid before {certificate.not_valid_before_utc}")


def _check_use(certificate: x509.Certificate) -> None:
    """Raise ValueError for extensions by which TLS stacks refuse everything below a CA."""
    if not _allows_tls(certificate):
        raise ValueError(
            f"{_named(certificate)} does not allow certificates below it for TLS clients "
            "and servers: its extended key usage must have both clientAuth and "
            "serverAuth (anyExtendedKeyUsage does not count)"
        )
    critical = {extension.oid for extension in certificate.extensions if extension.critical}
    if unknown := sorted(item.dotted_string for item in critical - _UNDERSTOOD):
        raise ValueError(
            f"{_named(certificate)} has a critical extension that TLS libraries do not "
            f"know and therefore refuse: {', '.join(unknown)[:100]}"
        )


def _allows_tls(certificate: x509.Certificate) -> bool:
    try:
        allowed = set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return True
    return allowed >= _TLS


def _has(certificate: x509.Certificate, kind: type[x509.ExtensionType]) -> bool:
    return any(isinstance(extension.value, kind) for extension in certificate.extensions)


def _named(certificate: x509.Certificate) -> str:
    return f"the certificate of {certificate.subject.rfc4514_string()[:100]!r}"


def _issuer(certificate: x509.Certificate) -> str:
    return repr(certificate.issuer.rfc4514_string()[:100])
