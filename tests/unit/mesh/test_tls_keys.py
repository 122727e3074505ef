"""Tests of the TLS 1.2 cipher suites and curves that fit the keys of service certificates."""

import pytest

from meshwright.mesh.config import TlsVersion
from meshwright.mesh.tls_keys import ServiceKeys, fitting_curves, fitting_suites

ECDSA, RSA = ServiceKeys
OLD, NEW = TlsVersion.V1_2, TlsVersion.V1_3


@pytest.mark.parametrize(
    ("keys", "said", "added"),
    [
        (ECDSA, (), ()),
        (ECDSA, ("ECDHE-RSA-AES128-GCM-SHA256",), ("ECDHE-ECDSA-AES128-GCM-SHA256",)),
        (ECDSA, ("AES128-SHA", "AES256-SHA"), ("ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA")),
        (ECDSA, ("[AES128-SHA|ECDHE-RSA-AES128-SHA]",), ("ECDHE-ECDSA-AES128-SHA",)),
        (ECDSA, ("ECDHE-RSA-AES128-SHA256",), ("ECDHE-ECDSA-AES128-GCM-SHA256",)),
        (ECDSA, ("AES128-SHA", "ECDHE-ECDSA-AES128-SHA"), ()),
        (RSA, ("AES128-SHA",), ()),
        (RSA, ("ECDHE-ECDSA-CHACHA20-POLY1305",), ("ECDHE-RSA-CHACHA20-POLY1305",)),
    ],
)
def test_cipher_suites_for_the_key_type_are_added_in_tls_1_2(
    keys: ServiceKeys, said: tuple[str, ...], added: tuple[str, ...]
) -> None:
    """They are appended only if no given suite fits; in TLS 1.3 suites do not depend on the key."""
    assert fitting_suites(said, keys, OLD) == said + added
    assert fitting_suites(said, keys, NEW) == said


@pytest.mark.parametrize(
    ("keys", "said", "added"),
    [
        (ECDSA, (), ()),
        (ECDSA, ("P-384",), ("P-256",)),
        (ECDSA, ("X25519", "P-256"), ()),
        (RSA, ("P-384",), ()),
    ],
)
def test_curve_of_the_key_is_added_in_tls_1_2(
    keys: ServiceKeys, said: tuple[str, ...], added: tuple[str, ...]
) -> None:
    """In TLS 1.2 a peer accepts a certificate only if the peer lists the certificate's curve."""
    assert fitting_curves(said, keys, OLD) == said + added
    assert fitting_curves(said, keys, NEW) == said
