"""Tests of the authorisation of proxies: reasons for refusal, and other kinds of certificates."""

import socket
import ssl
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.errors import PeerRefused, RefusalReason
from certs.issuers.authority import CertificateAuthority
from certs.keys.material import PeerCertificate, ProxyCertificate, ServerCertificate, ServiceCertificate
from certs.ledger.contract import Ledger
from certs.ledger.entry import LedgerEntry
from certs.lifetimes import VALIDITY
from certs.manager import CertificateManager
from certs.peer import authorize, read_peer
from certs.proxy import issue_proxy
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceAccountName, ServiceName, TrustDomain
from tests.tools.own_authority import own_authority

START = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NAME = ProxyName(ProxyUuid("u1"), ServiceName("shop"), Namespace("default"))
LONG = ProxyName(ProxyUuid("u" * 63), ServiceName("s" * 63), Namespace("n" * 63))
IDENTITY = ServiceIdentity(Namespace("default"), ServiceAccountName("shop"))

PEER = PeerCertificate("u1.shop.default", "1f", START, START + VALIDITY, (), client_auth=True)
ENTRY = LedgerEntry.issued("1f", NAME, START, START + VALIDITY)


def test_valid_peer_is_authorised_with_its_name() -> None:
    """Both ends of the validity are included. A certificate may be issued or already claimed."""
    assert authorize(PEER, ENTRY, START) == NAME
    assert authorize(PEER, replace(ENTRY, claimed_at=START), START + VALIDITY) == NAME


@pytest.mark.parametrize(
    ("peer", "entry", "now", "reason"),
    [
        (PEER, ENTRY, START - SECOND, RefusalReason.NOT_YET_VALID),
        (PEER, ENTRY, START + VALIDITY + SECOND, RefusalReason.EXPIRED),
        (replace(PEER, client_auth=False), ENTRY, START, RefusalReason.WRONG_USAGE),
        (replace(PEER, uri_sans=("spiffe://a/ns/b/sa/c",)), ENTRY, START, RefusalReason.WRONG_USAGE),
        (replace(PEER, common_name="shop.default"), ENTRY, START, RefusalReason.BAD_COMMON_NAME),
        (replace(PEER, common_name="u1.shop.default.x"), ENTRY, START, RefusalReason.BAD_COMMON_NAME),
        (replace(PEER, common_name="U1.shop.default"), ENTRY, START, RefusalReason.BAD_COMMON_NAME),
        (replace(PEER, common_name=""), ENTRY, START, RefusalReason.BAD_COMMON_NAME),
        (PEER, None, START, RefusalReason.NOT_ISSUED),
        (PEER, replace(ENTRY, serial="20"), START, RefusalReason.NOT_ISSUED),
        (PEER, replace(ENTRY, revoked_at=START), START, RefusalReason.REVOKED),
        (PEER, replace(ENTRY, claim_by=START), START + SECOND, RefusalReason.UNCLAIMED),
        (PEER, replace(ENTRY, common_name="u2.shop.default"), START, RefusalReason.NAME_MISMATCH),
    ],
)
def test_each_fault_of_a_peer_is_refused_with_its_reason(
    peer: PeerCertificate, entry: LedgerEntry | None, now: datetime, reason: RefusalReason
) -> None:
    """A single fault refuses an otherwise valid peer."""
    with pytest.raises(PeerRefused) as refused:
        authorize(peer, entry, now)
    assert refused.value.reason is reason
    assert str(refused.value).startswith(f"{reason}: ")


@pytest.mark.parametrize(
    "pem", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"]
)
def test_bytes_that_are_no_certificate_are_refused(pem: bytes) -> None:
    """Unreadable bytes are refused as the peer's fault, and never cause another exception."""
    with pytest.raises(PeerRefused) as refused:
        read_peer(pem)
    assert refused.value.reason is RefusalReason.UNREADABLE


# The following tests use real handshakes, whose verifier reads the real clock.


@pytest.fixture
def now() -> datetime:
    """Return the real time."""
    return datetime.now(UTC)


@pytest.fixture
def proxy(authority: CertificateAuthority, ledger: Ledger, now: datetime) -> ProxyCertificate:
    """Return a proxy certificate with a name of the maximum length."""
    return issue_proxy(authority, ledger, LONG, VALIDITY, now)


@pytest.fixture
def service(authority: CertificateAuthority, state: Path, now: datetime) -> ServiceCertificate:
    """Return a service certificate for `localhost`."""
    manager = CertificateManager(authority, PairFiles(state), timedelta(hours=24), lambda: 0.0)
    return manager.ensure(IDENTITY, ("localhost",), now)


@pytest.fixture
def server(authority: CertificateAuthority, state: Path, now: datetime) -> ServerCertificate:
    """Return the ADS server's certificate."""
    return ads_server_certificate(authority, PairFiles(state), now)


Shown = ProxyCertificate | ServiceCertificate | ServerCertificate


def _context(kind: int, shown: Shown, bundle: bytes, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(kind)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=bundle.decode())
    file = folder / f"{shown.serial}.pem"
    file.write_bytes(shown.key.reveal() + shown.chain_pem)
    context.load_cert_chain(file)
    return context


def handshake(server: Shown, client: Shown, bundle: bytes, folder: Path, host: str) -> bytes:
    """Do one mutual TLS handshake over loopback; return the client's certificate as the server has it.

    Raises ssl.SSLError with the verifier's reason when either side refuses.
    """
    server_context = _context(ssl.PROTOCOL_TLS_SERVER, server, bundle, folder)
    client_context = _context(ssl.PROTOCOL_TLS_CLIENT, client, bundle, folder)
    failures: list[ssl.SSLError | OSError] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def dial() -> None:
            try:
                with (
                    socket.create_connection(listener.getsockname(), timeout=60) as plain,
                    client_context.wrap_socket(plain, server_hostname=host) as tls,
                ):
                    tls.recv(1)
            except OSError as error:
                failures.append(error)

        dialler = threading.Thread(target=dial)
        dialler.start()
        plain, _ = listener.accept()
        plain.settimeout(60)
        try:
            with server_context.wrap_socket(plain, server_side=True) as tls:
                shown = tls.getpeercert(binary_form=True)
        except OSError as error:
            dialler.join()
            own = [error, *failures]
            raise next((e for e in own if isinstance(e, ssl.SSLCertVerificationError)), error) from None
        finally:
            plain.close()
            dialler.join()
    assert shown is not None
    return ssl.DER_cert_to_PEM_cert(shown).encode()


def test_sidecar_can_connect_to_the_control_plane_by_each_of_its_names(
    proxy: ProxyCertificate,
    server: ServerCertificate,
    authority: CertificateAuthority,
    ledger: Ledger,
    now: datetime,
    tmp_path: Path,
) -> None:
    """The longest common name arrives unchanged and is authorised. A host outside the certificate fails."""
    for host in ("localhost", "ads.mesh.example", "127.0.0.1", "::1"):
        peer = read_peer(handshake(server, proxy, authority.trust_bundle(), tmp_path, host))
        assert authorize(peer, ledger.entry(peer.serial), now) == LONG
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(server, proxy, authority.trust_bundle(), tmp_path, "elsewhere.example")


def test_service_certificate_is_refused_by_the_control_plane(
    service: ServiceCertificate,
    server: ServerCertificate,
    authority: CertificateAuthority,
    ledger: Ledger,
    now: datetime,
    tmp_path: Path,
) -> None:
    """TLS accepts a client certificate of our root, but `authorize` refuses its usage."""
    peer = read_peer(handshake(server, service, authority.trust_bundle(), tmp_path, "localhost"))
    assert peer.uri_sans == ("spiffe://mesh.example/ns/default/sa/shop",)
    with pytest.raises(PeerRefused) as refused:
        authorize(peer, ledger.entry(peer.serial), now)
    assert refused.value.reason is RefusalReason.WRONG_USAGE


def test_proxy_certificate_has_no_spiffe_uri_for_the_mesh(
    proxy: ProxyCertificate, service: ServiceCertificate, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """Services require a SPIFFE URI of the trust domain from their peers, so they refuse this certificate."""
    uris = [
        read_peer(handshake(service, client, authority.trust_bundle(), tmp_path, "localhost")).uri_sans
        for client in (service, proxy)
    ]
    assert uris == [("spiffe://mesh.example/ns/default/sa/shop",), ()]


def test_proxy_certificate_is_refused_as_a_server(
    proxy: ProxyCertificate, service: ServiceCertificate, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """A TLS client refuses it, because its extended key usage is only clientAuth."""
    certificate = x509.load_pem_x509_certificate(proxy.chain_pem)
    usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    with pytest.raises(ssl.SSLCertVerificationError, match=r"(unsuitable|unsupported) certificate purpose"):
        handshake(proxy, service, authority.trust_bundle(), tmp_path, "localhost")


def test_server_certificate_is_refused_as_a_client(
    server: ServerCertificate, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """A TLS server refuses it, because its extended key usage is only serverAuth."""
    with pytest.raises(ssl.SSLCertVerificationError, match=r"(unsuitable|unsupported) certificate purpose"):
        handshake(server, server, authority.trust_bundle(), tmp_path, "localhost")


def test_certificate_of_another_root_is_refused_in_the_handshake(
    proxy: ProxyCertificate, tmp_path: Path, now: datetime
) -> None:
    """The TLS library refuses a certificate of another CA before `authorize` is called."""
    other = own_authority(tmp_path / "other", TrustDomain("mesh.example"), now)
    strange = ads_server_certificate(other, PairFiles(tmp_path / "other"), now)
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer certificate"):
        handshake(strange, proxy, other.trust_bundle(), tmp_path, "localhost")
