"""Every part of the server, made and joined; nothing runs yet."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from admin.http.heartbeat import Heartbeat
from admin.metrics.registry import Metrics
from catalog.store.settings import HeaderLimits
from catalog.store.view import MeshSettings
from certs.issuers.contract import Issuer
from certs.ledger.contract import Ledger
from certs.opening import LEDGER_FILE, Opened
from certs.pair_files import PairFiles
from controller.drivers import DriverPages, MeshDrivers
from controller.kept import DNS_ANSWERS, VERDICTS, Kept, StateFile
from controller.process.room import StateRoom
from controller.process.watchdog import Watchdog
from controller.proxies import ProxyIssuing
from controller.reading import ServerReading
from controller.server_tls import ServerTls
from controller.settings import Settings
from controller.sources import sources_of
from delivery.answers import Answers
from delivery.certificates import ServiceCertificates
from delivery.debounce import Pace
from delivery.gathering import Gathering, Paces
from delivery.history.history import PushHistory
from delivery.loop import Loop, MeshState
from delivery.model import Model
from delivery.proxies.observer import MeshObserver
from delivery.proxies.readiness import EndpointReadiness
from delivery.proxies.registry import ProxyRegistry
from delivery.publishing import Publishing
from delivery.quarantine.quarantine import Quarantine
from delivery.quarantine.verdicts import Verdict
from delivery.snapshots.translation import translation
from delivery.verifying import Verification
from mesh.identity import ProxyName
from mesh.names import TrustDomain
from providers.sources import Sources
from sidecars.contract.events import Broker
from xds.cache import NodeKey, SnapshotCache
from xds.protocol.resource import Reference


@dataclass(frozen=True, slots=True)
class Parts:
    """The server's parts, joined."""

    settings: Settings
    clock: Callable[[], datetime]
    metrics: Metrics
    heartbeat: Heartbeat
    watchdog: Watchdog
    sources: Sources
    issuer: Issuer
    ledger: Ledger
    opened: Opened
    room: StateRoom
    keeper: ServiceCertificates
    tls: ServerTls
    drivers: MeshDrivers
    gathering: Gathering
    loop: Loop
    quarantine: Quarantine
    answers: Answers
    verdicts: Kept[tuple[Verdict, ...]]
    cache: SnapshotCache
    registry: ProxyRegistry
    history: PushHistory
    readiness: EndpointReadiness
    observer: MeshObserver
    pages: DriverPages
    events: Broker

    @property
    def reading(self) -> ServerReading:
        """Return what the admin pages may see."""
        return ServerReading(
            loop=self.loop,
            quarantine=self.quarantine,
            sources=self.sources,
            keeper=self.keeper,
            issuer=self.issuer,
            book=self.ledger,
            registry=self.registry,
            cache=self.cache,
            history=self.history,
            statuses=self.pages.statuses,
            late=self.watchdog.moments,
            clock=self.clock,
            told=self.settings,
        )

    def retried(self, name: ProxyName) -> tuple[Reference, ...]:
        """Offer a proxy again what it rejected; return which resources that is."""
        return self.answers.retry(NodeKey(str(name)))

    @property
    def proxies(self) -> ProxyIssuing:
        """Return what issues and revokes proxy certificates on request."""
        validity = timedelta(days=self.settings.proxy_certificate_days)
        issued = self.metrics.issued
        return ProxyIssuing(self.opened, self.clock, validity, lambda: issued("proxy"))


def join(settings: Settings, found: Opened, drivers: MeshDrivers, clock: Callable[[], datetime]) -> Parts:
    """Make every part; to be called on the running event loop. Raises CertificateError."""
    issuer, ledger, metrics = found.authority, found.ledger, Metrics()
    pairs, verdicts = PairFiles(settings.state), StateFile(settings.state, VERDICTS)
    sources = sources_of(settings, StateFile(settings.state, DNS_ANSWERS), clock)
    keeper = ServiceCertificates(issuer, pairs, lambda count: metrics.issued("service", count))
    cache = SnapshotCache()
    registry = ProxyRegistry(clock)
    history = PushHistory(cache, registry.find)
    ready_types = frozenset(each.ready_type for each in drivers.drivers.values())
    readiness = EndpointReadiness(ledger.entries(), settings.endpoint_admission, ready_types)

    quarantine = Quarantine(
        drivers.empty,
        drivers.reason,
        verdicts.load(),
        time.monotonic(),
        acknowledged=registry.acknowledged,
    )
    gathering = Gathering(
        sources,
        paces(settings),
        metrics,
        readiness.admitted,
    )
    publishing = Publishing(cache, quarantine, metrics, history.published)
    answers = Answers(publishing, gathering.changed, clock)
    translate = translation(*drivers.drivers.values(), environment=drivers.environment)

    def on_state(state: MeshState) -> None:
        registry.follow(state.proxies)
        answers.judged()

    loop = Loop(
        gathering,
        lambda: Model(translate, mesh_settings(settings), drivers.problems),
        keeper,
        publishing,
        clock=clock,
        meter=metrics,
        on_state=on_state,
        verification=Verification(metrics) if settings.verify else None,
    )
    return Parts(
        settings=settings,
        clock=clock,
        metrics=metrics,
        heartbeat=Heartbeat(time.monotonic, settings.heartbeat_seconds),
        watchdog=Watchdog(metrics, lambda: loop.doing, clock),
        sources=sources,
        issuer=issuer,
        ledger=ledger,
        opened=found,
        room=StateRoom(settings.state, settings.state / LEDGER_FILE, ledger),
        keeper=keeper,
        tls=ServerTls(issuer, pairs, settings.ads_hosts, clock()),
        drivers=drivers,
        gathering=gathering,
        loop=loop,
        quarantine=quarantine,
        answers=answers,
        verdicts=verdicts,
        cache=cache,
        registry=registry,
        history=history,
        readiness=readiness,
        observer=MeshObserver(registry, metrics, history, readiness, answers),
        pages=DriverPages(),
        events=Broker(),
    )


def paces(settings: Settings) -> Paces:
    """Return how changes are gathered."""
    policy = Pace(settings.quiet_seconds, settings.longest_seconds)
    return Paces(policy, Pace(settings.endpoint_quiet_seconds, settings.endpoint_longest_seconds))


def mesh_settings(settings: Settings) -> MeshSettings:
    """Return the settings that the catalog works with."""
    return MeshSettings(
        TrustDomain(settings.trust_domain),
        settings.cluster_domain,
        settings.virtual_addresses,
        settings.endpoint_admission,
        HeaderLimits(settings.headers_per_message, settings.header_kibibytes),
    )
