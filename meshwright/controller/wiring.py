"""Every part of the server, made and joined; nothing runs yet."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from catalog.store.view import View
from certs.contract import IssuerKind
from certs.custody import LEDGER_FILE, Opened
from certs.lifetimes import ProxyTerms
from certs.roots.secrets import Secrets
from certs.state.pair_files import PairFiles
from meshwright.admin.http.heartbeat import Heartbeat
from meshwright.admin.metrics.registry import Metrics
from meshwright.controller.delivery import delivering, mesh_settings
from meshwright.controller.drivers import DriverPages, MeshDrivers
from meshwright.controller.errors import StartupError
from meshwright.controller.gateway.assembly import GatewayKept, gateway_kept
from meshwright.controller.identity.join_tokens import JoinTokens
from meshwright.controller.identity.ledger_age import OlderLedger
from meshwright.controller.identity.proxy_certificates import ProxyIssuing
from meshwright.controller.identity.server_tls import ServerTls
from meshwright.controller.issuing.foreign_ca import Following, patience
from meshwright.controller.issuing.issuing import Issuing
from meshwright.controller.observing.reading import ServerReading
from meshwright.controller.observing.taps import taps
from meshwright.controller.process.disk_space import StateRoom
from meshwright.controller.process.watchdog import Watchdog
from meshwright.controller.roots.change import RootChange
from meshwright.controller.roots.declared import DeclaredRoots, DeclaredRule
from meshwright.controller.roots.rotation import declared_roots, root_change, roots_changed
from meshwright.controller.settings.reload import Reloading
from meshwright.controller.settings.settings import Settings
from meshwright.controller.sources import sources_of
from meshwright.controller.state_files import DNS_ANSWERS, VERDICTS, Kept, StateFile
from meshwright.delivery.assembly import Delivery
from meshwright.delivery.proxies.identity import MeshAuthenticator, contradiction
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.enrolment.ejections import Ejections
from meshwright.enrolment.trust import Confirmations
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.providers.sources import Sources
from meshwright.sidecars.contract.events import Broker
from meshwright.traffic.taps import Taps
from meshwright.traffic.traffic import Traffic
from xds.cache import NodeKey
from xds.protocol.resources.resource import Reference

if TYPE_CHECKING:
    from meshwright.admin.spans.export import SpanExport
    from meshwright.controller.identity.enrolment import Enrolling
    from meshwright.controller.kubernetes.cluster import Cluster
    from meshwright.controller.kubernetes.webhook import Webhook
    from meshwright.enrolment.proofs.kubernetes import KubernetesProof
    from meshwright.kubernetes.injection.credentials.roots_writer import PodRoots
    from meshwright.kubernetes.status.reporter import Reporter


@dataclass(frozen=True, slots=True)
class Parts:
    """The server's parts, joined; `settings` are those of its start, `reloading` has those in force.

    `cluster` is that from which the mesh is read, None where it is from none; `reporter` tells the owners of
    its objects what became of them. `span_export` tells a collector of spans, None where there is none.

    `confirmations` are what machines have said of the roots that they trust, `ejections` whom their proxies
    leave alone, `traffic` what they have counted, `taps` who watches requests.

    `listening` is filled as soon as the server serves: addresses by what they are for.
    """

    settings: Settings
    reloading: Reloading
    clock: Callable[[], datetime]
    metrics: Metrics
    heartbeat: Heartbeat
    watchdog: Watchdog
    cluster: "Cluster | None"
    reporter: "Reporter | None"
    span_export: "SpanExport | None"
    sources: Sources
    opened: Opened
    older_ledger: OlderLedger
    room: StateRoom
    issuing: Issuing
    tls: ServerTls
    drivers: MeshDrivers
    delivery: Delivery
    verdicts: Kept[tuple[Verdict, ...]]
    pages: DriverPages
    events: Broker
    webhook: "Webhook | None"
    pod_roots: "PodRoots | None"
    confirmations: Confirmations
    ejections: Ejections
    traffic: Traffic
    taps: Taps
    roots: RootChange | None
    declared_roots: DeclaredRoots
    gateway: GatewayKept
    following: Following
    listening: dict[str, str]

    @property
    def reading(self) -> ServerReading:
        """Return what the admin pages may see."""
        return ServerReading(
            delivery=self.delivery,
            sources=self.sources,
            opened=self.opened,
            statuses=self.pages.statuses,
            late=self.watchdog.moments,
            clock=self.clock,
            told=lambda: self.reloading.settings,
            listens=lambda: self.listening,
            ejections=self.ejections,
            observed=self.traffic,
        )

    def changed(self) -> None:
        """Note that some source has changed."""
        self.delivery.gathering.changed()
        if self.pod_roots is not None:
            self.pod_roots.noticed()

    def retried(self, name: ProxyName) -> tuple[Reference, ...]:
        """Offer a proxy again what it rejected; return which resources that is."""
        return self.delivery.answers.retry(NodeKey(str(name)))

    @property
    def proxies(self) -> ProxyIssuing:
        """Return what issues and revokes proxy certificates on request."""
        return _proxies(self.opened, self.reloading, self.metrics, self.clock)

    @property
    def tokens(self) -> JoinTokens:
        """Return what makes join tokens on request."""
        return JoinTokens(self.settings.state, self.opened.authority.trust_bundle, self.clock)

    @property
    def enrolling(self) -> "Enrolling | None":
        """Return the ports at which machines join and renew; None where there are to be none."""
        if self.settings.enrolment_address is None and self.settings.renewal_address is None:
            return None
        from meshwright.controller.identity.enrolment import Enrolling

        def view() -> View | None:
            return self.delivery.loop.state.view

        return Enrolling(
            self.settings,
            self.proxies,
            MeshAuthenticator(
                self.opened.ledger,
                view,
                self.clock,
                trusts=self.opened.authority.trusts,
                shown=self.delivery.shown_certificates,
            ),
            self.clock,
            lambda name: contradiction(name, view()),
            self.confirmations,
            self.ejections,
            self.traffic,
            self.metrics.enrolled,
            {} if self.cluster is None else {"kubernetes": partial(_kubernetes_proof, self.cluster, view)},
        )


def _proxies(
    found: Opened, reloading: Reloading, metrics: Metrics, clock: Callable[[], datetime]
) -> ProxyIssuing:
    def terms() -> ProxyTerms:
        told = reloading.settings
        within = told.proxy_claim_days
        return ProxyTerms(
            timedelta(days=told.proxy_certificate_days),
            None if within is None else timedelta(days=within),
        )

    return ProxyIssuing(found, clock, terms, lambda: metrics.issued("proxy", IssuerKind.BUILT_IN.value))


def _kubernetes_proof(cluster: "Cluster", view: Callable[[], View | None]) -> "KubernetesProof":
    from meshwright.controller.kubernetes.token_reviews import kubernetes_proof

    return kubernetes_proof(cluster.api, view)


def join(
    settings: Settings, found: Opened, signs: Issuing, drivers: MeshDrivers, clock: Callable[[], datetime]
) -> Parts:
    """Make every part; to be called on the running event loop. Raises CertificateError, or StartupError."""
    metrics, ledger, pairs = Metrics(), found.ledger, PairFiles(settings.state, found.seal)
    verdicts = StateFile(settings.state, VERDICTS)
    cluster = _cluster(settings, clock) if settings.kubernetes else None
    answers = StateFile(settings.state, DNS_ANSWERS)
    sources = sources_of(settings, None if cluster is None else cluster.source, answers, clock)
    exports = _span_export(settings, metrics, clock)
    waves = None if exports is None else exports.waves
    watching = taps(lambda: delivered.loop.state.view)
    delivered = delivering(
        settings, found, signs, drivers, sources, verdicts, watching, metrics, clock, waves
    )
    watching.changed = delivered.gathering.changed
    reloading = Reloading(settings)
    proxies = _proxies(found, reloading, metrics, clock)
    webhook = _webhook(settings, cluster, found, delivered, drivers, proxies, metrics, clock)
    pods = _pod_roots(settings, cluster, found, delivered, webhook, clock)
    pages, events, confirmations = DriverPages(), Broker(), Confirmations()
    patient = patience(found, confirmations, settings.trust_seconds)
    tls = ServerTls(found.authority, pairs, settings.ads_hosts, clock(), patient)
    elsewhere = signs.opened.kind is not IssuerKind.BUILT_IN
    changed = partial(roots_changed, delivered, tls, events, webhook, pods, clock)
    reporter = _reporter(settings, cluster, delivered, metrics, clock)
    rule = DeclaredRule(lambda: delivered.loop.state.view)
    change = root_change(
        found, delivered, tls, pages, confirmations, webhook, pods, changed, rule, clock, elsewhere=elsewhere
    )
    secrets = Secrets(settings.state, settings.root_secrets, TrustDomain(settings.trust_domain))
    return Parts(
        settings=settings,
        reloading=reloading,
        clock=clock,
        metrics=metrics,
        heartbeat=Heartbeat(time.monotonic, settings.heartbeat_seconds),
        watchdog=Watchdog(metrics, lambda: delivered.loop.doing, clock),
        cluster=cluster,
        reporter=reporter,
        span_export=exports,
        sources=sources,
        opened=found,
        older_ledger=OlderLedger(),
        room=StateRoom(settings.state, settings.state / LEDGER_FILE, ledger),
        issuing=signs,
        tls=tls,
        drivers=drivers,
        delivery=delivered,
        verdicts=verdicts,
        pages=pages,
        events=events,
        webhook=webhook,
        pod_roots=pods,
        confirmations=confirmations,
        ejections=Ejections(),
        traffic=Traffic(),
        taps=watching,
        roots=change,
        declared_roots=declared_roots(found, delivered, change, rule, secrets, reporter, clock),
        gateway=gateway_kept(settings, cluster, signs, delivered, reporter, metrics, clock),
        following=Following(found, changed),
        listening={},
    )


def _cluster(settings: Settings, clock: Callable[[], datetime]) -> "Cluster":
    from meshwright.controller.kubernetes.cluster import ANSWER, Reached, cluster

    hold = timedelta(seconds=settings.empty_answer_hold_seconds)
    return cluster(Reached.of(settings), clock, StateFile(settings.state, ANSWER), hold=hold)


def _span_export(settings: Settings, metrics: Metrics, clock: Callable[[], datetime]) -> "SpanExport | None":
    """Return who tells a collector of spans, None where there is none. Raises StartupError."""
    if settings.trace_collector is None:
        return None
    from meshwright.admin.spans.export import SpanExport, collector_tls

    ca = settings.trace_collector_ca
    try:
        tls = collector_tls(ca) if settings.trace_collector_tls else None
    except OSError as error:
        raise StartupError(f"cannot read {ca} (trace_collector_ca): {error.strerror}") from error
    return SpanExport(settings.trace_collector, tls, metrics, clock)


def _reporter(
    settings: Settings,
    cluster: "Cluster | None",
    delivered: Delivery,
    metrics: Metrics,
    clock: Callable[[], datetime],
) -> "Reporter | None":
    if cluster is None or not settings.kubernetes_reports:
        return None
    from meshwright.kubernetes.status.assembly import reporter

    return reporter(cluster.api, delivered, metrics, clock, cluster.home, settings.namespaces)


def _webhook(
    settings: Settings,
    cluster: "Cluster | None",
    found: Opened,
    delivered: Delivery,
    drivers: MeshDrivers,
    proxies: ProxyIssuing,
    metrics: Metrics,
    clock: Callable[[], datetime],
) -> "Webhook | None":
    place = settings.webhook_reached_at
    if cluster is None or not settings.webhook_address or not place:
        return None
    from meshwright.controller.kubernetes.webhook import Webhook

    injection = None
    if settings.injection:
        from meshwright.controller.kubernetes.injection import injection_of

        injection = injection_of(settings, cluster, delivered, drivers, proxies, metrics, clock)
    return Webhook(
        place,
        cluster,
        issuer=found.authority,
        pairs=PairFiles(settings.state, found.seal),
        gathering=delivered.gathering,
        settings=mesh_settings(settings),
        further=lambda: drivers.installed,
        metrics=metrics,
        clock=clock,
        register=settings.webhook_register,
        injection=injection,
        revision=settings.revision,
    )


def _pod_roots(
    settings: Settings,
    cluster: "Cluster | None",
    found: Opened,
    delivered: Delivery,
    webhook: "Webhook | None",
    clock: Callable[[], datetime],
) -> "PodRoots | None":
    """Return who keeps the ConfigMap by which pods join; None where none can."""
    name = settings.roots_config_map
    if cluster is None or not name or "kubernetes" not in settings.enrolment_proofs:
        return None
    from meshwright.kubernetes.injection.credentials.pod_roots import Reach, at_home
    from meshwright.kubernetes.injection.credentials.roots_writer import PodRoots

    injection = None if webhook is None else webhook.injection
    made = PodRoots(
        cluster.api,
        name,
        cluster.home,
        Reach(at_home(cluster.home), settings.revision),
        found.authority.trust_bundle,
        lambda: delivered.gathering.sources.merged,
        clock,
        lambda: None if injection is None else injection.config,
    )
    if injection is not None:
        injection.followers.append(made.noticed)
    return made
