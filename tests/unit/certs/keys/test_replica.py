"""Tests of the certificates of several control planes: each knows the others, and nobody else."""

import ssl
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from certs.contract import Names, Usage
from certs.errors import PeerRefused, RefusalReason
from certs.gateway import gateway_pair
from certs.issuers.authority import CertificateAuthority
from certs.keys.pair import issue_pair
from certs.keys.replica import VALIDITY, replica_host, replica_of, replica_pair
from certs.ledger.contract import Ledger
from certs.manager import CertificateManager
from certs.peer import authorize, read_peer
from certs.proxy import issue_proxy
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain

DOMAIN = TrustDomain("mesh.example")
LONG = f"{'h' * 63}-1a2b3c4d"
"""The longest name of a server: a host name of 63 characters, and the random part."""

Made = Callable[[CertificateAuthority, Ledger, Path, datetime], bytes]


def _proxy(authority: CertificateAuthority, ledger: Ledger, _state: Path, now: datetime) -> bytes:
    name = ProxyName.parse("replica.shop.default")
    return issue_proxy(authority, ledger, name, timedelta(days=1), now).chain_pem


def _service(authority: CertificateAuthority, _ledger: Ledger, state: Path, now: datetime) -> bytes:
    identity = ServiceIdentity(Namespace("replica"), ServiceAccountName("replica.a-1"))
    manager = CertificateManager(authority, PairFiles(state), timedelta(days=1), lambda: 0.0)
    return manager.ensure(identity, (replica_host("a", DOMAIN),), now).chain_pem


def _ads(authority: CertificateAuthority, _ledger: Ledger, state: Path, now: datetime) -> bytes:
    return ads_server_certificate(authority, PairFiles(state), now, (replica_host("a", DOMAIN),)).chain_pem


def _gateway(authority: CertificateAuthority, _ledger: Ledger, _state: Path, now: datetime) -> bytes:
    return gateway_pair(authority, (replica_host("a", DOMAIN),), timedelta(days=1), now).chain_pem


def _of(usage: Usage, names: Names) -> Made:
    def made(authority: CertificateAuthority, _ledger: Ledger, _state: Path, now: datetime) -> bytes:
        return issue_pair(authority, usage, names, timedelta(days=1), now).chain_pem

    return made


HOST = (replica_host("a", DOMAIN),)


@pytest.mark.parametrize("replica", ["a", "meshwright-0-1a2b3c4d", LONG])
def test_a_server_is_known_by_its_certificate(
    authority: CertificateAuthority, now: datetime, replica: str
) -> None:
    """The name is the server's, until the last second of the certificate."""
    pair = replica_pair(authority, replica, now)
    assert pair.leaf.not_after == now + VALIDITY
    assert replica_of(pair.chain_pem, DOMAIN, now) == replica
    assert replica_of(pair.chain_pem, DOMAIN, now + VALIDITY) == replica


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        pytest.param(_proxy, RefusalReason.BAD_COMMON_NAME, id="proxy"),
        pytest.param(_service, RefusalReason.BAD_COMMON_NAME, id="service"),
        pytest.param(_ads, RefusalReason.BAD_COMMON_NAME, id="ADS server"),
        pytest.param(_gateway, RefusalReason.BAD_COMMON_NAME, id="gateway"),
        pytest.param(
            _of(Usage.PROXY, Names("replica.a", dns_names=HOST)), RefusalReason.WRONG_USAGE, id="usage proxy"
        ),
        pytest.param(
            _of(Usage.SERVER, Names("replica.a", dns_names=HOST)),
            RefusalReason.WRONG_USAGE,
            id="usage server",
        ),
        pytest.param(
            _of(Usage.SERVICE, Names("replica.a", ("spiffe://mesh.example/ns/a/sa/b",), HOST)),
            RefusalReason.WRONG_USAGE,
            id="URI",
        ),
        pytest.param(_of(Usage.REPLICA, Names("replica.a")), RefusalReason.WRONG_USAGE, id="no DNS name"),
        pytest.param(
            _of(Usage.REPLICA, Names("replica.a", dns_names=("replica.other.example",))),
            RefusalReason.WRONG_USAGE,
            id="another mesh",
        ),
        pytest.param(
            _of(Usage.REPLICA, Names("replica.b", dns_names=HOST)),
            RefusalReason.WRONG_USAGE,
            id="another server",
        ),
        pytest.param(
            _of(Usage.REPLICA, Names("replica.a.b", dns_names=HOST)),
            RefusalReason.BAD_COMMON_NAME,
            id="labels",
        ),
        pytest.param(
            _of(Usage.REPLICA, Names("replica.", dns_names=HOST)), RefusalReason.BAD_COMMON_NAME, id="no name"
        ),
        pytest.param(
            _of(Usage.REPLICA, Names("", dns_names=HOST)), RefusalReason.BAD_COMMON_NAME, id="no common name"
        ),
        pytest.param(lambda *_: b"no certificate", RefusalReason.UNREADABLE, id="unreadable"),
    ],
)
def test_no_other_holder_of_a_certificate_is_a_server(
    authority: CertificateAuthority,
    ledger: Ledger,
    state: Path,
    now: datetime,
    made: Made,
    reason: RefusalReason,
) -> None:
    """Our CA also signs for proxies, services, gateways and servers for proxies."""
    chain = made(authority, ledger, state, now)
    with pytest.raises(PeerRefused) as refused:
        replica_of(chain, DOMAIN, now)
    assert refused.value.reason is reason


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (-timedelta(days=1), RefusalReason.NOT_YET_VALID),
        (VALIDITY + timedelta(seconds=1), RefusalReason.EXPIRED),
    ],
)
def test_certificate_of_a_server_ends(
    authority: CertificateAuthority, now: datetime, after: timedelta, reason: RefusalReason
) -> None:
    """A connection may outlive the certificate with which it began."""
    pair = replica_pair(authority, "a", now)
    with pytest.raises(PeerRefused) as refused:
        replica_of(pair.chain_pem, DOMAIN, now + after)
    assert refused.value.reason is reason


@pytest.mark.parametrize("replica", ["a", "b-1", LONG])
def test_a_server_is_no_proxy(
    authority: CertificateAuthority, ledger: Ledger, now: datetime, replica: str
) -> None:
    """The server for proxies refuses the certificate, whatever the name of the other server."""
    pair = replica_pair(authority, replica, now)
    with pytest.raises(PeerRefused) as refused:
        authorize(read_peer(pair.chain_pem), ledger.entry(pair.leaf.serial), now)
    assert refused.value.reason is RefusalReason.BAD_COMMON_NAME


def test_a_server_is_no_service(authority: CertificateAuthority, now: datetime) -> None:
    """Sidecars verify a SPIFFE URI of their peer, and the certificate has none."""
    assert replica_pair(authority, "a", now).leaf.names.uris == ()


def test_tls_verifies_the_host_name_of_each_server(authority: CertificateAuthority, now: datetime) -> None:
    """A client that verifies names reaches exactly the server that it asks, however long the name is."""
    hosts = {replica: replica_host(replica, DOMAIN) for replica in ("a", "b", LONG)}
    assert len({*hosts.values()}) == 3
    for replica, host in hosts.items():
        assert replica_pair(authority, replica, now).leaf.names.dns_names == (host,)
        # The ssl module refuses names with a label of more than 63 characters.
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=host)
