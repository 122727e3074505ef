"""Protocols through which pages, API and metrics read the rest of the server.

Each protocol is small, so that a page declares exactly the parts it reads, and a test can supply only those.
`MeshReading` combines all protocols; the controller implements it. Answers are immutable pictures of one
moment, and a page may evaluate them in another thread. The exception is the store of traffic statistics,
which belongs to the event loop.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from catalog.policy.provenance import InputObject
from catalog.store.view import View
from certs.keys.material import ServiceCertificate
from certs.ledger.entry import LedgerEntry
from certs.roots.succeeding_authority import AuthorityStatus
from meshwright.delivery.history.push import Push
from meshwright.delivery.proxies.held_certificates import HeldCertificate
from meshwright.delivery.proxies.status import ProxyStatus
from meshwright.delivery.quarantine.exclusions import LeftOut
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problems
from meshwright.providers.contract import Counts, Freshness
from meshwright.traffic.traffic import TrafficStatistics
from xds.protocol.resources.resource import Reference, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.stream_status import StreamStatus


@dataclass(frozen=True, slots=True)
class LateMoment:
    """A delay of the event loop: at the time `at` the loop ran `seconds` late.

    `doing` is the step of the wave in progress, empty without a wave.
    """

    at: datetime
    seconds: float
    doing: str


class LoopReading(Protocol):
    """Reader of the delays of the event loop."""

    def late_moments(self) -> tuple[LateMoment, ...]:
        """Return the last delays of the event loop, newest first."""


class SettingsReading(Protocol):
    """Settings of the server."""

    def settings(self) -> Mapping[str, object]:
        """Return the server's settings; secrets are not among them."""

    def listening(self) -> Mapping[str, str]:
        """Return the address and actual port of each listener, by purpose; empty until the server listens."""


class SourceReading(Protocol):
    """Reader of the state of the mesh's sources."""

    def freshness(self) -> Mapping[str, Freshness]:
        """Return the freshness (time of the last read and so on) of each source, by source name."""

    def counts(self) -> Mapping[str, Counts]:
        """Return the numbers of good, stale and refused objects of each source, by source name."""


class ViewReading(Protocol):
    """Reader of the computed mesh."""

    def view(self) -> View | None:
        """Return the newest view of the mesh; None before the first one is computed."""


class ObjectReading(Protocol):
    """Reader of the mesh objects from the sources, and of their problems."""

    def objects(self) -> Mapping[ObjectKey, SourcedObject]:
        """Return the mesh objects in use: the last valid version of each."""

    async def problems(self) -> Problems:
        """Return the sorted problems of the input, after a pending search for problems has finished."""

    def failures(self) -> tuple[tuple[str, str, bool], ...]:
        """Return the failed groups: name, error, and whether all its proxies kept a last good snapshot."""


class ProxyReading(ViewReading, Protocol):
    """Reader of the proxies; the workload of a proxy is in the view."""

    def proxies(self) -> tuple[ProxyStatus, ...]:
        """Return every connected, expected and former proxy, sorted by name."""

    def ejected(self) -> Mapping[str, tuple[ProxyName, ...]]:
        """Return the proxies that report an ejected endpoint, by the address of the endpoint."""

    def dead_after(self) -> timedelta:
        """Return the time after which a disconnected proxy counts as dead, if callers have ejected it."""


class TrafficReading(Protocol):
    """Traffic statistics that proxies report."""

    def traffic(self) -> TrafficStatistics:
        """Return the store of traffic statistics, with times by `time.monotonic`."""


class ChangeReading(Protocol):
    """Reader of values with a difference after each change of the mesh, for change events."""

    def newest(self) -> tuple[object, Problems]:
        """Return the state after the newest wave (a new object for each wave), and the problems so far."""

    def answers(self) -> int:
        """Return the number of ACKs and NACKs received from proxies since the start of the server."""


class StreamReading(Protocol):
    """Reader of the open xDS streams."""

    def streams(self) -> tuple[StreamStatus, ...]:
        """Return the status of each open xDS stream."""


class SnapshotReading(Protocol):
    """Reader of the snapshots (resources) served to proxies."""

    def snapshot(self, name: ProxyName) -> Snapshot | None:
        """Return the published snapshot of a proxy.

        For a disconnected proxy, return the snapshot that it would get, without secrets.
        """


class OriginReading(Protocol):
    """Reader of the objects from which a proxy's resources are made."""

    def objects_behind(
        self, name: ProxyName, type_url: TypeUrl, resource: ResourceName
    ) -> tuple[InputObject, ...]:
        """Return the sorted inputs of a proxy's resource; empty if the proxy has no such resource."""


class PushReading(Protocol):
    """Reader of the xDS responses sent to proxies."""

    def pushes(self, name: ProxyName) -> tuple[Push, ...]:
        """Return the last responses to a proxy, newest first."""

    def replaced(self, type_url: TypeUrl, resource: ResourceName, version: Version) -> Resource | None:
        """Return an earlier version of a resource; None if it is a secret or no longer stored."""


class RejectionReading(Protocol):
    """Reader of resources rejected by proxies, or perhaps too large for them."""

    def rejected(self, name: ProxyName) -> tuple[Reference, ...]:
        """Return the resources that a proxy has rejected and does not get now, sorted by type and name."""

    def refusal(self, name: ProxyName, type_url: TypeUrl, resource: ResourceName) -> str:
        """Return a proxy's error for a rejected resource, then the object at fault; empty if unknown."""

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the parts of policy that are not in force for some proxies, sorted by object and match."""

    def unreceived(self, name: ProxyName) -> str:
        """Return the large responses that a proxy may be unable to receive, as text; empty without any."""

    def failure(self, name: ProxyName) -> str:
        """Return the error if the computation of the group of a proxy failed; empty after a success."""


class CertificateReading(Protocol):
    """Reader of certificates, never of their keys."""

    def certificates(self) -> Mapping[ServiceIdentity, ServiceCertificate]:
        """Return the service certificate used for each identity."""

    def held_certificate(self, name: ProxyName) -> HeldCertificate | None:
        """Return the service certificate that a proxy has acknowledged, or None if unknown."""

    def trust_bundle(self) -> bytes:
        """Return the CA certificates by which proxies verify their peers, as PEM."""

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return the ledger entries of all proxy certificates."""

    def authority(self) -> AuthorityStatus:
        """Return the status of the CA that signs proxy certificates."""


class MeshReading(
    LoopReading,
    SettingsReading,
    SourceReading,
    ObjectReading,
    ProxyReading,
    StreamReading,
    SnapshotReading,
    TrafficReading,
    ChangeReading,
    OriginReading,
    PushReading,
    RejectionReading,
    CertificateReading,
    Protocol,
):
    """All readers together: the data of every debug page and API answer."""
