"""Tests of the certificates of the ADS server and of the webhook."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.errors import RequestError
from certs.issuers.authority import CertificateAuthority
from certs.keys.leaf import read_leaf
from certs.server import VALIDITY, ads_server_certificate, webhook_certificate
from certs.state.pair_files import PairFiles


def test_ads_certificate_is_for_servers_with_default_and_configured_names(
    authority: CertificateAuthority, state: Path, now: datetime
) -> None:
    """The default names are the trust domain's, localhost and loopback. The usage is only serverAuth."""
    made = ads_server_certificate(
        authority, PairFiles(state), now, ["mesh.internal", "10.0.0.7", "localhost"]
    )
    certificate = x509.load_pem_x509_certificate(made.chain_pem)
    usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    names = read_leaf(made.chain_pem).names
    assert list(usages) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert names.alternatives == ((), made.dns_names, made.ip_addresses)
    assert made.dns_names == ("ads.mesh.example", "localhost", "mesh.internal")
    assert made.ip_addresses == ("10.0.0.7", "127.0.0.1", "::1")
    assert (made.not_before, made.not_after) == (now - timedelta(seconds=60), now + VALIDITY)
    assert (state / "ads" / "certificate.pem").stat().st_mode & 0o777 == 0o600


def test_ads_certificate_is_kept_until_it_is_due_or_the_hosts_change(
    authority: CertificateAuthority, state: Path, now: datetime
) -> None:
    """A restart presents the same certificate; other hosts, or half of its life, cause a new one."""
    first = ads_server_certificate(authority, PairFiles(state), now)
    assert ads_server_certificate(authority, PairFiles(state), now + timedelta(days=40)) == first
    second = ads_server_certificate(authority, PairFiles(state), now, ["mesh.internal"])
    third = ads_server_certificate(authority, PairFiles(state), now + timedelta(days=50), ["mesh.internal"])
    assert len({first.serial, second.serial, third.serial}) == 3


def test_damaged_ads_certificate_is_replaced(
    authority: CertificateAuthority, state: Path, now: datetime
) -> None:
    """An empty file in its place causes a new certificate."""
    first = ads_server_certificate(authority, PairFiles(state), now)
    (state / "ads" / "certificate.pem").write_bytes(b"")
    assert ads_server_certificate(authority, PairFiles(state), now).serial != first.serial


def test_invalid_host_is_refused(authority: CertificateAuthority, state: Path, now: datetime) -> None:
    """The error names the host; a host with a port is neither a DNS name nor an IP address."""
    with pytest.raises(RequestError, match=r"^host 'mesh:15128' is neither a DNS name nor an IP address$"):
        ads_server_certificate(authority, PairFiles(state), now, ["mesh:15128"])


@pytest.mark.parametrize(
    ("host", "alternatives"),
    [
        ("meshwright.mesh-system.svc", (("meshwright.mesh-system.svc",), ())),
        ("fd00:0::7", ((), ("fd00::7",))),
    ],
)
def test_webhook_certificate_has_only_the_host_that_is_dialled(
    authority: CertificateAuthority, state: Path, now: datetime, host: str, alternatives: object
) -> None:
    """The certificate is stored beside the ADS server's and reused."""
    made = webhook_certificate(authority, PairFiles(state), now, host)
    assert (made.dns_names, made.ip_addresses) == alternatives
    assert webhook_certificate(authority, PairFiles(state), now, host) == made
    assert ads_server_certificate(authority, PairFiles(state), now).serial != made.serial
    assert (state / "webhook" / "certificate.pem").stat().st_mode & 0o777 == 0o600
