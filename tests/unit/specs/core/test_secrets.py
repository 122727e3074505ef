"""Secrets for gateways: whole values, and faults without any content."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from meshwright.mesh.gateway.secrets import EdgeCertificate, TlsSecret
from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.values.private_key import PrivateKey
from meshwright.providers.directory.manifests import Manifests
from tests.tools.tls_secrets import EdgePair, secret, self_signed

KEY = PolicyKey(Namespace("default"), "shop")
PAIR = self_signed("shop.example")


def read(manifest: str) -> TlsSecret:
    """Read the only object of a manifest, which must have no problems."""
    manifests = Manifests().apply("mesh.yaml", manifest)
    assert manifests.problems() == ()
    (sourced,) = manifests.objects().values()
    assert isinstance(sourced.value, TlsSecret)
    return sourced.value


def fault(chain: bytes, key: bytes) -> str:
    """Return the fault of a Secret with these entries."""
    found = read(secret("shop", {"tls.crt": chain, "tls.key": key}))
    assert (found.chain_pem, found.private_key) == (b"", PrivateKey(b""))
    return found.fault


def test_pair_is_read_whole() -> None:
    """An intermediate certificate stays behind the first one."""
    assert read(PAIR.manifest("shop")) == TlsSecret(KEY, PAIR.chain, PrivateKey(PAIR.key))
    chain = PAIR.chain + self_signed("other.example").chain
    assert read(EdgePair(chain, PAIR.key).manifest("shop")).chain_pem == chain


def test_certificate_of_the_secret_has_its_public_facts() -> None:
    """Names in lower case and in order, and the time of validity; those of the first certificate count."""
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    end = begin + timedelta(days=90)
    pair = self_signed("Shop.example", "*.example", valid=(begin, end))
    found = read(EdgePair(pair.chain + PAIR.chain, pair.key).manifest("shop"))
    assert found.certificate == EdgeCertificate(("*.example", "shop.example"), begin, end)


def test_entries_may_be_plain_text() -> None:
    """`stringData` precedes `data`, as in Kubernetes."""
    indented = PAIR.chain.decode().replace("\n", "\n    ").rstrip()
    manifest = secret("shop", {"tls.crt": b"other", "tls.key": PAIR.key})
    assert read(f"{manifest}stringData:\n  tls.crt: |\n    {indented}\n").fault == ""


def test_secret_of_another_type_keeps_nothing() -> None:
    """Its content is the business of others."""
    found = read(secret("shop", {"password": b"hunter2"}, kind="Opaque"))
    assert found == TlsSecret(KEY, fault="its type is not kubernetes.io/tls")


@pytest.mark.parametrize(
    ("chain", "key", "expected"),
    [
        (PAIR.key, PAIR.key, "the file of the certificate lacks a readable certificate"),
        (PAIR.chain, b"Hello world", "the private key cannot be read"),
        (PAIR.chain, self_signed("shop.example").key, "the private key does not belong to the certificate"),
    ],
    ids=["key in place of the certificate", "no key", "key of another certificate"],
)
def test_fault_says_what_is_wrong(chain: bytes, key: bytes, expected: str) -> None:
    """GatewayInvalidTLSConfiguration has a Secret with malformed content."""
    assert fault(chain, key) == expected


@pytest.mark.parametrize(
    "private",
    [
        rsa.generate_private_key(65537, 1024),  # noqa: S505 - this is what must be refused
        ec.generate_private_key(ec.SECP256K1()),
    ],
    ids=["short", "curve"],
)
def test_key_that_envoy_refuses_is_a_fault(private: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> None:
    """Envoy would reject the certificate, and keep the one before."""
    pair = self_signed("shop.example", key=private)
    expected = "the key is neither RSA with 2048 bits or more nor ECDSA with P-256, P-384 or P-521"
    assert fault(pair.chain, pair.key) == expected


def test_missing_and_malformed_entries_are_faults() -> None:
    """The name of the entry is said, and nothing of its content."""
    assert read(secret("shop", {"tls.crt": PAIR.chain})).fault == "data.tls.key is missing"
    whole = PAIR.manifest("shop")
    assert read(whole.partition("  tls.key")[0] + "  tls.key: '%%'\n").fault == "data.tls.key is not base64"
    assert read(whole.partition("data:\n")[0]).fault == "data.tls.crt is missing"


def test_key_is_in_no_text_of_the_value() -> None:
    """Neither form, nor the form of a container, shows it."""
    found = read(PAIR.manifest("shop"))
    assert str(found) == f"TlsSecret(key={KEY!r}, fault='')"
