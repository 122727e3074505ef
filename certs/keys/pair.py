"""Certificates with their private keys: issuing one, and matching certificate and key."""

import itertools
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from certs.contract import CertificateRequest, Issuer, KeyKind, Names, Possession, Usage
from certs.errors import IssuerError, RequestError
from certs.keys.leaf import Leaf, is_signed_by_bundle, leaf_of, read_leaf
from certs.keys.material import PrivateKey
from certs.keys.proof_of_possession import OwnKey, written
from certs.lifetimes import BACKDATED, BACKDATED_SHARE
from meshwright.tls.matching import require_match
from meshwright.tls.pem import first_in

_NAMES: Final = (x509.UniformResourceIdentifier, x509.DNSName, x509.IPAddress)
_UNNAMED: Final = (Usage.SERVICE, Usage.GATEWAY)
_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class KeyPairOptions:
    """Options for new certificates: the kind of key, and the time before now at which validity begins."""

    key: KeyKind = KeyKind.ECDSA_P256
    backdated: timedelta = BACKDATED


MAKING: Final = KeyPairOptions()

_LATER: Final = timedelta(minutes=5)
"""Tolerance for the end of validity: the issuer counts from a later moment, and by another clock."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate chain (PEM, leaf first), the fields of the leaf, and the leaf's private key."""

    leaf: Leaf
    chain_pem: bytes = field(repr=False)
    key: PrivateKey = field(repr=False)


def issue_pair(
    issuer: Issuer,
    usage: Usage,
    names: Names,
    lifetime: timedelta,
    now: datetime,
    making: KeyPairOptions = MAKING,
) -> Pair:
    """Create a new key and have a certificate signed for the key, without storing them.

    Validity begins a little before `now`, at most BACKDATED_SHARE of `lifetime`, and ends `lifetime` after
    `now`. A key is never used for two certificates. Raises IssuerError also if the issuer's answer differs
    from the request, or would not be accepted now.
    """
    key = _new_key(making.key)
    leaf, chain_pem = sign(issuer, usage, names, lifetime, OwnKey(key, names), now, making.backdated)
    return Pair(leaf, chain_pem, _pkcs8(key))


def sign(
    issuer: Issuer,
    usage: Usage,
    names: Names,
    lifetime: timedelta,
    possession: Possession,
    now: datetime,
    backdated: timedelta = BACKDATED,
) -> tuple[Leaf, bytes]:
    """Have a certificate signed for the requester's key; return the fields and the chain (PEM).

    Validity and errors as for `issue_pair`; a certificate for another key is an error too.
    """
    not_before, not_after = _valid(lifetime, now, backdated)
    request = CertificateRequest(usage, names, not_before, not_after, possession)
    began = time.monotonic()
    chain_pem = issuer.issue(request, now)
    # A remote issuer may take a minute, and its certificate is valid only from the moment of signing.
    now += timedelta(seconds=time.monotonic() - began)
    answer = f"the issuer's answer for {names.common_name}"
    try:
        certificate = first_in(chain_pem)
        leaf = leaf_of(certificate)
        certified = written(certificate.public_key())
        below = is_signed_by_bundle(chain_pem, issuer.trust_bundle())
    except ValueError as error:
        raise IssuerError(f"{answer} cannot be used: {error}") from error
    # A certificate for another key would let the holder of that key act under these names.
    if certified != possession.public_key():
        raise IssuerError(f"{answer} is for another key than requested")
    if wrong := _wrong(leaf, request, now) or _more(certificate):
        raise IssuerError(f"{answer} {wrong}")
    if not below:
        raise IssuerError(
            f"{answer} lacks a chain to a root of the issuer's own bundle; perhaps "
            "intermediate certificates are missing"
        )
    return leaf, chain_pem


def _valid(lifetime: timedelta, now: datetime, backdated: timedelta) -> tuple[datetime, datetime]:
    if lifetime < timedelta(seconds=1):
        raise RequestError(f"a validity of {lifetime} is too short; it must be at least 1 second")
    second = now.replace(microsecond=0)
    begin = second - min(backdated, lifetime * BACKDATED_SHARE)
    return begin.replace(microsecond=0), (second + lifetime).replace(microsecond=0)


def _wrong(leaf: Leaf, request: CertificateRequest, now: datetime) -> str:
    """Return how a certificate differs from the request, or why it is invalid now; empty if good.

    Another common name is accepted for services and gateways, because peers do not use it.
    """
    same_common = leaf.names.common_name == request.names.common_name or request.usage in _UNNAMED
    if not (same_common and leaf.names.alternatives == request.names.alternatives):
        text = ", ".join(itertools.chain(*leaf.names.alternatives)) or "none"
        return f"has names that differ from the request: {text[:200]}"
    if not leaf.serves(request.usage):
        return "has other key usages than requested; check which extended key usages the issuer allows"
    if now < leaf.not_before:
        return f"is valid from {leaf.not_before}, and it is {now} here; one of the two clocks is wrong"
    if now >= leaf.not_after:
        return f"expired at {leaf.not_after}, and it is {now} here; one of the two clocks is wrong"
    if leaf.not_after > request.not_after + _LATER:
        return f"is valid until {leaf.not_after}, longer than requested: {request.not_after}"
    return ""


def _more(certificate: x509.Certificate) -> str:
    """Return forbidden properties of a certificate; empty for a good certificate.

    With a CA certificate a sidecar could sign for every identity.
    """
    others = set[str]()
    for extension in certificate.extensions:
        match extension.value:
            case x509.BasicConstraints(ca=True) | x509.KeyUsage(key_cert_sign=True):
                return "is a CA certificate, which may sign other certificates"
            case x509.SubjectAlternativeName() as names:
                others = {type(name).__name__ for name in names if not isinstance(name, _NAMES)}
            case _:
                pass
    return f"has kinds of names that were not requested: {', '.join(sorted(others))}" if others else ""


def _new_key(kind: KeyKind) -> _Key:
    match kind:
        case KeyKind.ECDSA_P256:
            return ec.generate_private_key(ec.SECP256R1())
        case KeyKind.RSA_2048 | KeyKind.RSA_3072 | KeyKind.RSA_4096:
            return rsa.generate_private_key(65537, int(kind.removeprefix("rsa-")))


def _pkcs8(key: _Key) -> PrivateKey:
    return PrivateKey(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def matched_pair(chain_pem: bytes, key: PrivateKey) -> Pair:
    """Combine a chain with its key. Raises ValueError, without key material, for a wrong key."""
    require_match(chain_pem, key.reveal())
    return Pair(read_leaf(chain_pem), chain_pem, key)
