"""Wiring of all parts of the server, before any of them runs."""

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from certs.custody import AuthorityWithLedger
from certs.ledger.entry import LedgerEntry
from meshwright.admin.replicas.view import AllReplicas
from meshwright.controller.drivers import MeshDrivers
from meshwright.controller.identity.join_tokens import open_tokens
from meshwright.controller.issuing.issuing import IssuerAccess
from meshwright.controller.observing.reading import ServerReading
from meshwright.controller.parts.cluster_parts import ClusterParts, saying, without_cluster
from meshwright.controller.parts.core import CoreParts, join_core
from meshwright.controller.parts.identity import IdentityParts, join_identity, proxy_issuing
from meshwright.controller.parts.monitors import MonitorParts, join_monitors
from meshwright.controller.parts.proxies import ProxyParts, join_proxies
from meshwright.controller.settings.settings import Settings
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.problems.problem import Problems
from meshwright.sidecars.contract.events import CertificateRevoked

if TYPE_CHECKING:
    from meshwright.controller.sharing.isolated_server import IsolatedServer
    from meshwright.controller.sharing.peers.parts import PeerParts
    from meshwright.controller.sharing.record_pruning import HasWorkload
    from meshwright.controller.sharing.shared_store import SharedStore

_OUR_PROOFS: Final = frozenset({"join-token", "kubernetes"})
"""Kinds of proof whose validity is known; an installed kind may be older than any revocation."""
OF_PROXIES: Final = ("proxies", "identities")
"""Reporters of problems that the proxies of one server cause: rejections, and shared identities."""

_log = structlog.get_logger("controller.wiring")


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts of the server; the last three are `None` unless several servers share a store."""

    core: CoreParts
    identity: IdentityParts
    in_cluster: ClusterParts
    proxies: ProxyParts
    monitors: MonitorParts
    shared: "SharedStore | None" = None
    peers: "PeerParts | None" = None
    isolated: "IsolatedServer | None" = None

    @property
    def reading(self) -> ServerReading:
        """Return the reader of the running server's data for the admin pages."""
        core, monitors = self.core, self.monitors
        return ServerReading(
            delivery=core.delivery,
            sources=core.sources,
            opened=self.identity.opened,
            statuses=self.proxies.pages.statuses,
            late=monitors.watchdog.moments,
            clock=core.clock,
            read_settings=lambda: core.reloading.settings,
            listens=lambda: monitors.listening,
            ejections=monitors.ejections,
            observed=monitors.traffic,
        )

    def changed(self) -> None:
        """Start a new wave of delivery, and update the Pods' CA certificates, after a source has changed."""
        self.core.delivery.gathering.changed()
        if self.in_cluster.pod_roots is not None:
            self.in_cluster.pod_roots.noticed()

    def shared_works(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of the tasks for a store that several servers share."""
        if self.shared is not None:
            yield from self.shared.works(self._heard, self._compared)
            answers, quarantine = self.core.delivery.answers, self.core.delivery.quarantine
            yield from self.shared.rejections.works(
                answers.heard, quarantine.findings.verdicts, quarantine.serves
            )
            keeps_revoked = not _OUR_PROOFS.issuperset(self.core.settings.enrolment_proofs)
            yield "pruning of records", self.shared.prune(self._workloads, keeps_revoked=keeps_revoked)
        if self.peers is not None:
            yield from self.peers.works(lambda: self.core.delivery.gathering.sources.merged)
        if self.isolated is not None:
            yield "store at other servers", self.isolated.run()

    def own_problems(self) -> Problems:
        """Return the problems that only this server can know, because its proxies cause them."""
        return self.core.delivery.loop.state.all_problems.reported(*OF_PROXIES)

    def proxy_counts(self) -> Mapping[str, int]:
        """Return the numbers of proxies by state; several servers count each proxy once."""
        own = self.core.delivery.registry.counts()
        return own if self.peers is None else self.peers.leading.counts(own, self.reading.proxies)

    def progress(self) -> bytes:
        """Return the progress of changed objects at the proxies of this server, for the leader."""
        if (reporter := self.in_cluster.reporter) is None:
            return b"[]"
        from meshwright.kubernetes.status.other_progress import encode_progress

        return encode_progress(reporter.own_progress())

    @property
    def replicas(self) -> AllReplicas | None:
        """Return the servers of the mesh for pages and API; `None` for the only server."""
        return None if self.peers is None else self.peers.views

    def _heard(self, entries: tuple[LedgerEntry, ...]) -> None:
        """Take entries that other servers have changed: admissions and revocations hold here too."""
        self.core.delivery.readiness.heard(entries)
        for entry in entries:
            if entry.revoked_at is not None:
                _log.info(
                    "proxy certificate revoked on another server",
                    proxy=entry.common_name,
                    serial=entry.serial,
                )
                self.proxies.events.publish(CertificateRevoked(entry.common_name, entry.serial))

    def _workloads(self) -> "HasWorkload | None":
        """Return the function that tells whether a proxy has a workload, or None while that is not sure."""
        view = self.core.view()
        if view is None or self.core.sources.remarks():
            return None
        from meshwright.controller.sharing.living_workloads import is_alive

        cluster = self.in_cluster.cluster
        return partial(is_alive, view, None if cluster is None else cluster.source.may_have_pod)

    def _compared(self, identities: Iterable[ServiceIdentity]) -> None:
        """Compare service certificates with those that other servers have stored, in the next wave."""
        self.core.delivery.certificates.compare(identities)
        self.core.delivery.gathering.changed()


def join(
    settings: Settings,
    opened: AuthorityWithLedger,
    issuing: IssuerAccess,
    drivers: MeshDrivers,
    clock: Callable[[], datetime],
    shared: "SharedStore | None" = None,
) -> Parts:
    """Make all parts; call this on the running event loop. Raises CertificateError and StartupError."""
    tokens = partial(open_tokens, settings.state) if shared is None else shared.tokens.opened
    rejections = None if shared is None else shared.rejections
    if shared is not None:
        issuing = replace(issuing, turn=shared.turn)
    if settings.kubernetes:
        # The only import of a cluster's libraries, so servers without a cluster do not need their memory.
        from meshwright.controller.parts.cluster import join_in_cluster, reached

        cluster = reached(settings, clock)
        core = join_core(settings, opened, issuing, drivers, cluster.source, clock, rejections)
        certificates = proxy_issuing(core, opened)
        in_cluster = join_in_cluster(core, cluster, opened, issuing, drivers, certificates, shared)
    else:
        core = join_core(settings, opened, issuing, drivers, None, clock, rejections)
        certificates = proxy_issuing(core, opened)
        in_cluster = without_cluster(core)
    proxies = join_proxies(drivers)
    others, issuer_servers = (None, None) if shared is None else (shared.roots, shared.issuer_servers)
    identity = join_identity(
        core, opened, issuing, certificates, in_cluster, proxies, tokens, others, issuer_servers
    )
    monitors = join_monitors(core, opened, None if shared is None else shared.place)
    parts = Parts(core, identity, in_cluster, proxies, monitors, shared)
    if shared is None:
        return parts
    from meshwright.controller.sharing.isolated_server import IsolatedServer
    from meshwright.controller.sharing.peers.parts import PeerParts

    say = saying(core.delivery, in_cluster.reporter, "proxies of other servers")
    peers = PeerParts(
        settings,
        shared,
        opened.authority,
        parts.reading,
        lambda: core.reloading.settings,
        say,
        parts.own_problems,
        clock,
    )
    if in_cluster.reporter is not None:
        in_cluster.reporter.ask_others(peers.ask_progress)
    streams, moved = proxies.pages.movable_streams, core.metrics.streams_moved
    isolated = IsolatedServer(shared.answer_age, peers.store_ages, streams, moved)
    return replace(parts, peers=peers, isolated=isolated)
