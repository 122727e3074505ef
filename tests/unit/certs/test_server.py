"""The certificates of the ADS server and of the webhook."""

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


def test_it_is_for_servers_of_the_decided_names(
    authority: CertificateAuthority, state: Path, now: datetime
) -> None:
    """ServerAuth alone; trust domain's name, localhost and loopback always, configured hosts beside."""
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


def test_it_is_kept_until_it_is_due_or_hosts_change(
    authority: CertificateAuthority, state: Path, now: datetime
) -> None:
    """A restart shows the same certificate; other hosts or half of its life bring a new one."""
    first = ads_server_certificate(authority, PairFiles(state), now)
    assert ads_server_certificate(authority, PairFiles(state), now + timedelta(days=40)) == first
    second = ads_server_certificate(authority, PairFiles(state), now, ["mesh.internal"])
    third = ads_server_certificate(authority, PairFiles(state), now + timedelta(days=50), ["mesh.internal"])
    assert len({first.serial, second.serial, third.serial}) == 3


def test_a_service_pair_in_its_place_is_not_used(
    authority: CertificateAuthority, state: Path, now: datetime
) -> None:
    """A stored pair of another usage is replaced, whoever put it there."""
    first = ads_server_certificate(authority, PairFiles(state), now)
    (state / "ads" / "certificate.pem").write_bytes(b"")
    assert ads_server_certificate(authority, PairFiles(state), now).serial != first.serial


def test_a_host_that_is_none_is_refused(authority: CertificateAuthority, state: Path, now: datetime) -> None:
    """A host and port, or anything else, is named in the error."""
    with pytest.raises(RequestError, match=r"^host 'mesh:15128' is neither a DNS name nor an IP address$"):
        ads_server_certificate(authority, PairFiles(state), now, ["mesh:15128"])


@pytest.mark.parametrize(
    ("host", "alternatives"),
    [
        ("meshwright.mesh-system.svc", (("meshwright.mesh-system.svc",), ())),
        ("fd00:0::7", ((), ("fd00::7",))),
    ],
)
def test_the_webhook_s_is_for_the_host_that_is_dialled_and_no_other(
    authority: CertificateAuthority, state: Path, now: datetime, host: str, alternatives: object
) -> None:
    """Beside the other one, and kept as that is."""
    made = webhook_certificate(authority, PairFiles(state), now, host)
    assert (made.dns_names, made.ip_addresses) == alternatives
    assert webhook_certificate(authority, PairFiles(state), now, host) == made
    assert ads_server_certificate(authority, PairFiles(state), now).serial != made.serial
    assert (state / "webhook" / "certificate.pem").stat().st_mode & 0o777 == 0o600
