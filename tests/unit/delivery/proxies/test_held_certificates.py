"""Tests of held certificates: those that proxies acknowledged, not those sent to them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.keys.material import ServiceCertificate
from certs.manager import CertificateManager
from certs.state.pair_files import PairFiles
from meshwright.delivery.proxies.held_certificates import HeldCertificate, HeldCertificates
from meshwright.delivery.proxies.proxy import Proxy
from meshwright.delivery.quarantine.acknowledged_resources import OWN, AcknowledgedVersions
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain
from meshwright.sidecars.document.translate import CREDENTIALS, NAME
from meshwright.sidecars.envoy.security.secrets import service_certificate, trust_root
from tests.tools.own_authority import own_authority
from xds.cache import NodeKey
from xds.protocol.resources.resource import LISTENER, SECRET, Resource
from xds.protocol.resources.snapshot import Snapshot
from xds.stream_status import Variant

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
DOMAIN = TrustDomain("cluster.local")
IDENTITY = ServiceIdentity(Namespace("shop"), ServiceAccountName("store"))
Renewed = Callable[[], ServiceCertificate]


@pytest.fixture
def renewed(tmp_path: Path) -> Renewed:
    """Return a function that issues one certificate after the other."""
    authority = own_authority(tmp_path, DOMAIN, NOW)
    count = iter(range(9))

    def issued() -> ServiceCertificate:
        hours = timedelta(hours=next(count))
        manager = CertificateManager(authority, PairFiles(tmp_path), timedelta(days=1), lambda: 0.0)
        names = (f"s{hours.seconds}",)
        return manager.ensure(IDENTITY, names, NOW + hours)

    return issued


def proxy(*acknowledged: Resource, streams: bool = True) -> Proxy:
    """Return a proxy that has acknowledged these resources, one after the other."""
    result = Proxy(NodeKey("a.store.shop"), ProxyName.parse("a.store.shop"))
    for resource in acknowledged:
        noted = result.acknowledged.get(resource.type_url, AcknowledgedVersions(OWN))
        result.acknowledged[resource.type_url] = noted.put({resource.name: (resource,)})
    if streams:
        result.streams = (("ipv4:1.2.3.4:5", Variant.DELTA),)
    return result


def held(certificate: ServiceCertificate) -> HeldCertificate:
    """Return the held form of a certificate."""
    return HeldCertificate(certificate.serial, certificate.not_after)


def test_acknowledged_certificate_is_held_until_another_is_acknowledged(renewed: Renewed) -> None:
    """Roots are not counted; the first expiry is that of the proxy with the older certificate."""
    old, new = renewed(), renewed()
    root = trust_root(DOMAIN, b"-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
    served = Snapshot.of([service_certificate(new), root])
    certificates = HeldCertificates(lambda _: served)
    behind, ahead = proxy(root, service_certificate(old)), proxy(*map(service_certificate, (old, new)), root)
    assert (certificates.certificate(behind), certificates.certificate(ahead)) == (held(old), held(new))
    assert certificates.first_end([ahead, behind]) == old.not_after
    assert certificates.first_end([]) is None


def test_connected_proxy_without_an_acknowledged_secret_holds_the_served_one(renewed: Renewed) -> None:
    """A proxy that reconnects with the current certificate is not sent it again.

    For a disconnected proxy without acknowledgements the certificate is unknown.
    """
    certificate = renewed()
    certificates = HeldCertificates(lambda _: Snapshot.of([service_certificate(certificate)]))
    listener = Resource(LISTENER, NAME, service_certificate(certificate).version, b"")
    assert certificates.certificate(proxy(listener)) == held(certificate)
    assert certificates.certificate(proxy(streams=False)) is None


def test_credentials_in_json_are_read_without_keeping_the_key(renewed: Renewed) -> None:
    """Another driver sends credentials as JSON; the object's state must not contain a private key."""
    certificate = renewed()
    chain, key = certificate.chain_pem.decode(), certificate.key.reveal().decode()
    body = ('{"certificateChain":"' + chain + '","privateKey":"' + key + '"}').replace("\n", "\\n")
    resource = Resource(
        CREDENTIALS, NAME, service_certificate(certificate).version, body.encode(), secret=True
    )
    certificates = HeldCertificates(lambda _: None)
    assert certificates.certificate(proxy(resource)) == held(certificate)
    assert "PRIVATE" not in repr(vars(certificates))
    assert service_certificate(certificate).secret
    assert service_certificate(certificate).type_url == SECRET
