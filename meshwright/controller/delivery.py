"""Delivery, made from the settings: the loop with certificates, models and paces."""

from collections.abc import Callable
from datetime import datetime

from catalog.store.settings import HeaderLimits
from catalog.store.view import MeshSettings
from certs.contract import KeyKind
from certs.custody import AuthorityWithLedger
from meshwright.admin.metrics.registry import Metrics
from meshwright.controller.drivers import MeshDrivers
from meshwright.controller.issuing.issuing import IssuerAccess, making
from meshwright.controller.settings.settings import Settings
from meshwright.controller.state_files import PersistentValue
from meshwright.delivery.assembly import Delivery, delivery
from meshwright.delivery.certificates.certificates import IssuanceCounts, ServiceCertificates
from meshwright.delivery.history.open_waves import OpenWaves
from meshwright.delivery.mesh_sources import Paces
from meshwright.delivery.model import Model
from meshwright.delivery.proxies.readiness import EndpointReadiness
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.delivery.snapshots.translation import translation
from meshwright.delivery.snapshots.wanted_groups import ConnectedGroups
from meshwright.delivery.timing.debounce import Pace
from meshwright.mesh.long_lived import LongLived
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.policies.resilience import Resilience
from meshwright.mesh.tls_keys import ServiceKeys
from meshwright.providers.sources import Sources
from meshwright.traffic.taps import TapTable


def delivering(
    settings: Settings,
    authority: AuthorityWithLedger,
    issuing: IssuerAccess,
    drivers: MeshDrivers,
    sources: Sources,
    verdicts: PersistentValue[tuple[Verdict, ...]],
    taps: TapTable,
    metrics: Metrics,
    clock: Callable[[], datetime],
    waves: OpenWaves | None,
    *,
    has_others: bool = False,
) -> Delivery:
    """Return the parts of delivery, made from the settings; `waves` follows each wave until the ACKs.

    With `has_others` other servers serve proxies of the mesh too.
    """
    # Each driver has its own type of listener whose ACK makes a proxy ready.
    ready_types = frozenset(driver.ready_type for driver in drivers.drivers.values())
    translate, preview = (
        translation(*drivers.drivers.values(), environment=drivers.environment, secrets=secrets)
        for secrets in (True, False)
    )
    return delivery(
        sources=sources,
        paces=paces(settings),
        readiness=EndpointReadiness(authority.ledger.entries(), settings.endpoint_admission, ready_types),
        certificates=ServiceCertificates(
            issuing.opened.issuer,
            authority.pairs_of_services(settings.state),
            counting(metrics, issuing.opened.kind.value),
            making=making(settings),
            asking=issuing.asking,
            waits=issuing.opened.issuer.waits,
            turn=issuing.turn,
        ),
        new_model=lambda: Model(
            translate, mesh_settings(settings), lambda: drivers.installed, ConnectedGroups, preview
        ),
        new_quarantine=lambda acknowledged, connected: Quarantine(
            drivers.empty,
            drivers.reason,
            verdicts.load(),
            acknowledged=acknowledged,
            connected=connected if has_others else None,
        ),
        lingering=settings.lingering_seconds,
        meter=metrics,
        clock=clock,
        watched=taps.tapped,
        verify=settings.verify,
        waves=waves,
    )


def counting(metrics: Metrics, issuer: str) -> Callable[[IssuanceCounts], None]:
    """Return a counter of an issuer's service certificates in metrics.

    These metrics exist from the start with the value 0.
    """
    # A counter that appears only with its first event hides this event from Prometheus' `rate`.
    metrics.issued("service", issuer, 0)
    metrics.renewed(issuer, 0)

    def counted(issuance_counts: IssuanceCounts) -> None:
        metrics.issued("service", issuer, issuance_counts.issued)
        metrics.renewed(issuer, issuance_counts.renewed)
        for reason, count in issuance_counts.failed.items():
            metrics.not_issued(issuer, reason, count)

    return counted


def paces(settings: Settings) -> Paces:
    """Return how long changes of policy and of endpoints are collected before a wave, from the settings."""
    policy = Pace(settings.quiet_seconds, settings.longest_seconds)
    return Paces(policy, Pace(settings.endpoint_quiet_seconds, settings.endpoint_longest_seconds))


def mesh_settings(settings: Settings) -> MeshSettings:
    """Return the part of the server's settings with which the catalog computes the mesh."""
    return MeshSettings(
        TrustDomain(settings.trust_domain),
        settings.cluster_domain,
        settings.virtual_addresses,
        settings.endpoint_admission,
        HeaderLimits(settings.headers_per_message, settings.header_kibibytes),
        settings.denial_reasons,
        settings.trace_sampling,
        resilience(settings),
        settings.virtual_addresses_ipv6,
        settings.method_override_headers,
        LongLived.from_settings(upgrades=settings.http_upgrades, tcp_idle_seconds=settings.tcp_idle_seconds),
        ServiceKeys.ECDSA_P256 if settings.service_certificate_key is KeyKind.ECDSA_P256 else ServiceKeys.RSA,
    )


def resilience(settings: Settings) -> Resilience:
    """Return the settings for failing endpoints: connect retries, ejection, and limits of silence."""
    return Resilience.from_settings(
        connect_seconds=settings.connect_seconds,
        retries=settings.connect_retries,
        failures=settings.ejecting_failures,
        server_errors=settings.ejecting_server_errors,
        ejected_seconds=settings.ejected_seconds,
        ejected_percent=settings.ejected_percent,
        silence_seconds=settings.peer_silence_seconds,
        reuse_seconds=settings.connection_reuse_seconds,
    )
