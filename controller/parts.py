"""Every part of the server, made and joined; nothing runs yet."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from admin.heartbeat import Heartbeat
from admin.metrics import Metrics
from catalog.view import MeshSettings
from certs.issuer import Issuer
from certs.ledger import Ledger
from certs.server import ads_server_certificate
from controller.debounce import Pace
from controller.identity import MeshAuthenticator
from controller.issuing import CertificateKeeper
from controller.mesh import MeshLoop, MeshState
from controller.observer import MeshObserver
from controller.proxies import ProxyIssuing
from controller.reading import ServerReading
from controller.registry import ProxyRegistry
from controller.settings import Settings
from controller.translation import translation
from mesh.names import TrustDomain
from providers.directory import DirectorySource
from sidecars.driver import SidecarDriver
from xds.cache import SnapshotCache
from xds.limits import Limits
from xds.server import AdsServer, TlsIdentity


class ServerTls:
    """What the ADS server shows in handshakes; `refresh` renews it when it is due."""

    def __init__(self, issuer: Issuer, state: Path, hosts: tuple[str, ...], now: datetime) -> None:
        """Raise CertificateError if there is no certificate to begin with."""
        self._issuer = issuer
        self._state = state
        self._hosts = hosts
        self._identity = self._made(now)

    def identity(self) -> TlsIdentity:
        """Return what to show now; may be called from any thread."""
        return self._identity

    def refresh(self, now: datetime) -> None:
        """Renew the certificate if it is due; raise CertificateError, and keep the old one."""
        self._identity = self._made(now)

    def _made(self, now: datetime) -> TlsIdentity:
        certificate = ads_server_certificate(self._issuer, self._state, now, self._hosts)
        return TlsIdentity(certificate.chain_pem, certificate.key.reveal(), self._issuer.trust_bundle())


@dataclass(frozen=True, slots=True)
class Parts:
    """The server's parts, joined."""

    settings: Settings
    clock: Callable[[], datetime]
    metrics: Metrics
    heartbeat: Heartbeat
    source: DirectorySource
    keeper: CertificateKeeper
    cache: SnapshotCache
    registry: ProxyRegistry
    observer: MeshObserver
    tls: ServerTls
    loop: MeshLoop
    ads: AdsServer
    reading: ServerReading
    proxies: ProxyIssuing


def join(
    settings: Settings, issuer: Issuer, ledger: Ledger, driver: SidecarDriver, clock: Callable[[], datetime]
) -> Parts:
    """Make every part; to be called on the running event loop. Raises CertificateError."""
    metrics = Metrics()
    source = DirectorySource(settings.mesh, clock)
    keeper = CertificateKeeper(issuer, settings.state, lambda count: metrics.issued("service", count))
    cache = SnapshotCache()
    registry = ProxyRegistry(clock)
    observer = MeshObserver(registry, metrics)
    tls = ServerTls(issuer, settings.state, settings.ads_hosts, clock())

    def on_state(state: MeshState) -> None:
        registry.follow(state.proxies)

    loop = MeshLoop(
        source,
        (source,),
        keeper,
        cache,
        translation(driver),
        mesh_settings(settings),
        pace=Pace(settings.quiet_seconds, settings.longest_seconds),
        clock=clock,
        metrics=metrics,
        on_state=on_state,
        verify=settings.verify,
    )
    ads = AdsServer(
        cache,
        MeshAuthenticator(ledger, lambda: loop.state.view, clock),
        tls.identity,
        observer=observer,
        limits=limits(settings),
    )
    return Parts(
        settings=settings,
        clock=clock,
        metrics=metrics,
        heartbeat=Heartbeat(time.monotonic, settings.heartbeat_seconds),
        source=source,
        keeper=keeper,
        cache=cache,
        registry=registry,
        observer=observer,
        tls=tls,
        loop=loop,
        ads=ads,
        reading=ServerReading(
            lambda: loop.state, source, (source,), keeper, ledger, registry, cache, ads, settings
        ),
        proxies=ProxyIssuing(
            issuer,
            ledger,
            clock,
            timedelta(days=settings.proxy_certificate_days),
            lambda: metrics.issued("proxy"),
        ),
    )


def mesh_settings(settings: Settings) -> MeshSettings:
    """Return the settings that the catalog works with."""
    return MeshSettings(
        TrustDomain(settings.trust_domain), settings.cluster_domain, settings.virtual_addresses
    )


def limits(settings: Settings) -> Limits:
    """Return the bounds of the ADS server."""
    return Limits(
        streams=settings.max_streams,
        streams_per_certificate=settings.streams_per_certificate,
        streams_per_second=settings.streams_per_second,
        admission_seconds=settings.admission_seconds,
        age_seconds=settings.stream_age_seconds,
        write_seconds=settings.write_seconds,
        warming_seconds=settings.warming_seconds,
        request_bytes=settings.request_bytes,
        node_bytes=settings.node_bytes,
        names_per_type=settings.names_per_type,
        types=settings.types_per_stream,
        unserved_seconds=settings.held_seconds,
        recheck_seconds=settings.recheck_seconds,
    )
