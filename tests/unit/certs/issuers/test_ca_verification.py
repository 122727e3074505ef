"""Tests of accepted CAs: those below which BoringSSL (in gRPC) and OpenSSL accept a proxy, and no others.

BoringSSL checks less of a root; agents request certificates with OpenSSL, which refuses such a root.
"""

import contextlib
import ipaddress
import ssl
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, ObjectIdentifier

from certs.contract import Names, Usage
from certs.errors import StateError
from certs.issuers.authority import CertificateAuthority
from certs.issuers.file_authority import WatchedFiles, WatchedIssuer
from certs.issuers.root import CaNames, read_root
from certs.keys.pair import Pair, issue_pair
from meshwright.mesh.names import TrustDomain
from tests.unit.certs.issuers.example_cas import Ca, ca

DOMAIN = TrustDomain("cluster.local")
NOW = datetime.now(UTC).replace(microsecond=0)
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
Extensions = Sequence[tuple[x509.ExtensionType, bool]]


def _permits(name: x509.GeneralName) -> x509.NameConstraints:
    return x509.NameConstraints(permitted_subtrees=[name], excluded_subtrees=None)


def _uses(*purposes: ObjectIdentifier) -> x509.ExtendedKeyUsage:
    return x509.ExtendedKeyUsage(purposes)


NETWORK = x509.IPAddress(ipaddress.ip_network("10.0.0.0/8"))
GOOD: dict[str, Extensions] = {
    "plain": (),
    "both uses": [(_uses(SERVER, CLIENT), False)],
    "any use beside both": [(_uses(SERVER, CLIENT, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE), False)],
    "what is not known and not critical": [
        (x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"\x05\x00"), False)
    ],
    "its policies, critical": [
        (x509.CertificatePolicies([x509.PolicyInformation(ObjectIdentifier("1.2.3.5"), None)]), True)
    ],
}
BAD: dict[str, tuple[Extensions, str]] = {
    "any use alone": (
        [(_uses(ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE), False)],
        (
            "does not allow certificates below it for TLS clients and servers: its extended key "
            "usage must have both clientAuth and serverAuth (anyExtendedKeyUsage does not count)"
        ),
    ),
    "one use": (
        [(_uses(SERVER), False)],
        (
            "does not allow certificates below it for TLS clients and servers: its extended key "
            "usage must have both clientAuth and serverAuth (anyExtendedKeyUsage does not count)"
        ),
    ),
    "another DNS name": ([(_permits(x509.DNSName("other.example")), True)], "has name constraints"),
    "its own DNS name": ([(_permits(x509.DNSName("cluster.local")), True)], "has name constraints"),
    "its own URIs": (
        [(_permits(x509.UniformResourceIdentifier("cluster.local")), True)],
        "has name constraints",
    ),
    "a network, not critical": ([(_permits(NETWORK), False)], "has name constraints"),
    "what is not known": (
        [(x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"\x05\x00"), True)],
        "has a critical extension that TLS libraries do not know and therefore refuse: 1.2.3.4",
    ),
    "what our library knows": (
        [(x509.TLSFeature([x509.TLSFeatureType.status_request]), True)],
        f"do not know and therefore refuse: {ExtensionOID.TLS_FEATURE.dotted_string}",
    ),
}
CASES = {**GOOD, **{name: extensions for name, (extensions, _) in BAD.items()}}


def _cas(extensions: Extensions, *, at_root: bool) -> tuple[Ca, Ca]:
    """Return a root and an intermediate, one of which has these extensions."""
    root = ca("root", NOW, more=extensions if at_root else ())
    return root, ca("between", NOW, root, more=() if at_root else extensions)


def _taken(root: Ca, between: Ca) -> CertificateAuthority:
    names = CaNames("tls.crt", "tls.key", "ca.crt", "give another")
    return CertificateAuthority(read_root(names, between.pem, between.key_pem, root.pem, DOMAIN, NOW), DOMAIN)


def _issued(authority: CertificateAuthority) -> tuple[Pair, Pair]:
    """Return certificates of the control plane and of a proxy."""
    day = timedelta(days=1)
    server = issue_pair(authority, Usage.SERVER, Names("ads", dns_names=("ads.cluster.local",)), day, NOW)
    return server, issue_pair(authority, Usage.PROXY, Names("one.store.shop"), day, NOW)


@contextlib.contextmanager
def _served(pair: Pair, roots: bytes) -> Iterator[int]:
    server = grpc.server(ThreadPoolExecutor(1))
    credentials = grpc.ssl_server_credentials(
        [(pair.key.reveal(), pair.chain_pem)], root_certificates=roots, require_client_auth=True
    )
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


def _shakes_hands(folder: Path, server: Pair, proxy: Pair, roots: bytes) -> bool:
    """Return whether OpenSSL accepts the certificates of both sides."""
    ends, pipes = [], (ssl.MemoryBIO(), ssl.MemoryBIO())
    for pair, purpose in ((server, ssl.PROTOCOL_TLS_SERVER), (proxy, ssl.PROTOCOL_TLS_CLIENT)):
        context = ssl.SSLContext(purpose)
        chain, key = folder / "chain.pem", folder / "key.pem"
        chain.write_bytes(pair.chain_pem)
        key.write_bytes(pair.key.reveal())
        context.load_cert_chain(chain, key)
        context.load_verify_locations(cadata=roots.decode())
        context.verify_mode = ssl.CERT_REQUIRED
        is_server = pair is server
        into, out = pipes if is_server else pipes[::-1]
        name = None if is_server else "ads.cluster.local"
        ends.append(context.wrap_bio(into, out, server_side=is_server, server_hostname=name))
    for end in ends[::-1] * 3:
        with contextlib.suppress(ssl.SSLWantReadError):
            try:
                end.do_handshake()
            except ssl.SSLCertVerificationError:
                return False
    return all(ssl_object.version() for ssl_object in ends)


def _gets_in(server: Pair, proxy: Pair, roots: bytes) -> bool:
    """Return whether a call reaches the server, which answers that the method does not exist."""
    credentials = grpc.ssl_channel_credentials(roots, proxy.key.reveal(), proxy.chain_pem)
    name = (("grpc.ssl_target_name_override", "ads.cluster.local"),)
    with (
        _served(server, roots) as port,
        grpc.secure_channel(f"127.0.0.1:{port}", credentials, name) as channel,
    ):
        try:
            channel.unary_unary("/no/method")(b"", timeout=30)
        except grpc.RpcError as error:
            return error.code() is grpc.StatusCode.UNIMPLEMENTED
    return False


@pytest.mark.parametrize("at_root", [False, True], ids=["between", "root"])
@pytest.mark.parametrize("case", GOOD)
def test_proxy_can_connect_below_every_accepted_ca(tmp_path: Path, case: str, at_root: bool) -> None:
    """Both gRPC and OpenSSL verify the issued certificates."""
    root, between = _cas(CASES[case], at_root=at_root)
    issued = _issued(_taken(root, between))
    assert _gets_in(*issued, root.pem)
    assert _shakes_hands(tmp_path, *issued, root.pem)


@pytest.mark.parametrize("at_root", [False, True], ids=["between", "root"])
@pytest.mark.parametrize("case", BAD)
def test_ca_below_which_no_proxy_could_connect_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, at_root: bool
) -> None:
    """If the check is disabled, gRPC or OpenSSL refuses the connection.

    The error names the certificate and the cause.
    """
    root, between = _cas(CASES[case], at_root=at_root)
    with pytest.raises(StateError) as refused:
        _taken(root, between)
    assert BAD[case][1] in str(refused.value)
    assert f"CN={'root' if at_root else 'between'}" in str(refused.value)

    monkeypatch.setattr("certs.issuers.chain._check_use", lambda certificate: None)
    monkeypatch.setattr("certs.issuers.chain._has", lambda certificate, kind: False)
    issued = _issued(_taken(root, between))
    assert not (_gets_in(*issued, root.pem) and _shakes_hands(tmp_path, *issued, root.pem))


def test_ca_that_signs_only_for_services_may_have_name_constraints(tmp_path: Path) -> None:
    """Certificates of services have alternative names, which verifiers can compare with the constraints."""
    root, between = _cas([(_permits(x509.UniformResourceIdentifier("cluster.local")), True)], at_root=False)
    between.put(tmp_path, root)
    assert WatchedIssuer(WatchedFiles.within(tmp_path), DOMAIN, NOW).not_after > NOW
    with pytest.raises(StateError, match="has name constraints"):
        WatchedIssuer(WatchedFiles.within(tmp_path), DOMAIN, NOW, signs_proxies=True)
