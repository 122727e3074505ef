"""Tests of arbitrary bytes from strangers, which are accepted or refused with a message."""

import base64
from collections.abc import Callable
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from certs.errors import CertificateError, PeerRefused, RequestError
from certs.keys.signing_request import judged
from certs.peer import read_peer
from tests.unit.certs.keys.test_signing_request import csr
from tests.unit.certs.ledger.entries import START, YEAR

_KEY: Final = ec.generate_private_key(ec.SECP256R1())
_NAME: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "u1.store.shop")])
REQUEST: Final = csr(_KEY, hashes.SHA256(), x509.SubjectAlternativeName([x509.DNSName("a")]))
CERTIFICATE: Final = (
    x509.CertificateBuilder(_NAME, _NAME, _KEY.public_key(), 1, START, START + YEAR)
    .add_extension(x509.SubjectAlternativeName([x509.DNSName("a")]), critical=False)
    .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    .sign(_KEY, hashes.SHA256())
    .public_bytes(serialization.Encoding.DER)
)
_EDITS: Final = st.lists(
    st.tuples(st.integers(0, 2**16), st.binary(max_size=4), st.integers(0, 4)), max_size=6
)


def _edited(der: bytes, edits: list[tuple[int, bytes, int]]) -> bytes:
    for place, put, gone in edits:
        at = place % (len(der) + 1)
        der = der[:at] + put + der[at + gone :]
    return der


def _pem(der: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n%b-----END CERTIFICATE-----\n" % base64.encodebytes(der)


def _refusal(read: Callable[[bytes], object], given: bytes) -> CertificateError | None:
    """Return the refusal of these bytes, or None if they are accepted; let other errors pass."""
    try:
        read(given)
    except (RequestError, PeerRefused) as error:
        return error
    return None


@given(st.binary(max_size=300) | st.builds(_edited, st.just(REQUEST), _EDITS))
def test_any_signing_request_is_accepted_or_refused_with_a_short_message(der: bytes) -> None:
    """The message is for the sender of the request, so it has less than 300 characters."""
    assert len(str(_refusal(judged, der))) < 300


@given(st.binary(max_size=300) | st.builds(_edited, st.just(CERTIFICATE), _EDITS))
def test_any_certificate_is_read_or_refused_as_unreadable(der: bytes) -> None:
    """Arbitrary bytes as PEM or DER never raise another error."""
    for shown in (_pem(der), der):
        refused = _refusal(read_peer, shown)
        assert refused is None or "cannot be read" in str(refused)


def _versioned(der: bytes, before: bytes, after: bytes) -> bytes:
    assert der.count(before) >= 1
    return der.replace(before, after, 1)


def test_unknown_version_of_a_request_or_certificate_is_refused() -> None:
    """The library raises a special error for it, which is not a ValueError."""
    with pytest.raises(RequestError, match="is not PKCS#10 in DER"):
        judged(_versioned(REQUEST, b"\x02\x01\x00", b"\x02\x01\x01"))
    with pytest.raises(PeerRefused):
        read_peer(_pem(_versioned(CERTIFICATE, b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07")))
