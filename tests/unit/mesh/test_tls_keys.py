"""Suites and curves of TLS 1.2 that fit the keys of service certificates."""

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
def test_the_same_ciphers_for_the_keys_that_there_are(
    keys: ServiceKeys, said: tuple[str, ...], added: tuple[str, ...]
) -> None:
    """Appended where nothing fits; TLS 1.3 asks nothing of the key."""
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
def test_the_curve_of_the_key_where_it_is_needed(
    keys: ServiceKeys, said: tuple[str, ...], added: tuple[str, ...]
) -> None:
    """In TLS 1.2 alone a certificate is used with peers that name its curve."""
    assert fitting_curves(said, keys, OLD) == said + added
    assert fitting_curves(said, keys, NEW) == said
