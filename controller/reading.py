"""What the admin pages may see of the running server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from admin.reading import ProxyStanding
from catalog.view import View
from certs.ledger import Ledger, LedgerEntry
from certs.material import ServiceCertificate
from controller.issuing import CertificateKeeper
from controller.mesh import MeshState, Specification
from controller.registry import ProxyRegistry
from controller.settings import Settings
from mesh.identity import ProxyName, ServiceIdentity
from mesh.objects import ObjectKey, Problem, Sourced
from providers.contract import EndpointProvider, Freshness
from xds.cache import NodeKey, SnapshotCache
from xds.server import AdsServer
from xds.snapshot import Snapshot
from xds.status import StreamStatus


@dataclass(frozen=True, slots=True)
class ServerReading:
    """admin.reading.MeshReading over the server's parts."""

    state: Callable[[], MeshState]
    specification: Specification
    providers: tuple[EndpointProvider, ...]
    keeper: CertificateKeeper
    book: Ledger
    registry: ProxyRegistry
    cache: SnapshotCache
    ads: AdsServer
    told: Settings

    def streams(self) -> tuple[StreamStatus, ...]:
        """Return the open streams."""
        return self.ads.statuses()

    def proxies(self) -> tuple[ProxyStanding, ...]:
        """Return every proxy that is or should be here."""
        return self.registry.standings()

    def snapshot(self, name: ProxyName) -> Snapshot | None:
        """Return what is published for a proxy."""
        return self.cache.snapshot(NodeKey(str(name)))

    def view(self) -> View | None:
        """Return the newest view."""
        return self.state().view

    def objects(self) -> Mapping[ObjectKey, Sourced]:
        """Return the objects in force."""
        return self.specification.objects()

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with the input."""
        return self.state().problems

    def failures(self) -> tuple[tuple[str, str, bool], ...]:
        """Return the groups that failed."""
        return tuple(
            (each.group, each.error, each.kept == each.proxies) for each in self.state().published.failures
        )

    def certificates(self) -> Mapping[ServiceIdentity, ServiceCertificate]:
        """Return the service certificates in force."""
        return self.keeper.certificates

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return the proxy certificates."""
        return self.book.entries()

    def freshness(self) -> Mapping[str, Freshness]:
        """Return how fresh each source is."""
        return {provider.name: provider.freshness() for provider in self.providers}

    def settings(self) -> Mapping[str, object]:
        """Return the server's settings."""
        return self.told.model_dump(mode="json")
