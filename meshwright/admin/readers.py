"""What the pages read: small protocols through which they see the rest, each page what it shows."""

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
from meshwright.traffic.traffic import Traffic
from xds.protocol.resources.resource import Reference, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.stream_status import StreamStatus


@dataclass(frozen=True, slots=True)
class LateMoment:
    """A moment at which the event loop turned `seconds` too late.

    `doing` is what the wave was at that was being made, empty where none was.
    """

    at: datetime
    seconds: float
    doing: str


class LoopReading(Protocol):
    """How the event loop does."""

    def late_moments(self) -> tuple[LateMoment, ...]:
        """Return the last late moments, newest first."""


class SettingsReading(Protocol):
    """How the server was told to run."""

    def settings(self) -> Mapping[str, object]:
        """Return the server's settings; none of them is a secret."""

    def listening(self) -> Mapping[str, str]:
        """Return where the server listens, by what for, with the ports it has; empty until it serves."""


class SourceReading(Protocol):
    """What the sources say of themselves."""

    def freshness(self) -> Mapping[str, Freshness]:
        """Return how fresh each source is, by its name."""

    def counts(self) -> Mapping[str, Counts]:
        """Return what each source holds, by its name."""


class ViewReading(Protocol):
    """The mesh as it is computed."""

    def view(self) -> View | None:
        """Return the newest view, None before the first."""


class ObjectReading(Protocol):
    """What was read, and what is wrong with it."""

    def objects(self) -> Mapping[ObjectKey, SourcedObject]:
        """Return the objects in force."""

    async def problems(self) -> Problems:
        """Return what is wrong with the input, sorted: with all of it that is followed."""

    def failures(self) -> tuple[tuple[str, str, bool], ...]:
        """Return the groups that failed: name, error, whether a last good snapshot is kept."""


class ProxyReading(ViewReading, Protocol):
    """Which proxies there are; a proxy's workload is in the view."""

    def proxies(self) -> tuple[ProxyStatus, ...]:
        """Return every proxy that is or should be here, sorted by name."""

    def ejected(self) -> Mapping[str, tuple[ProxyName, ...]]:
        """Return whose proxies have ejected endpoints, by their address; of those that are told of."""

    def dead_after(self) -> timedelta:
        """Return how long a proxy is gone that is dead, where callers have ejected it."""


class TrafficReading(Protocol):
    """What proxies have counted."""

    def traffic(self) -> Traffic:
        """Return it, by the clock `time.monotonic`."""


class ChangeReading(Protocol):
    """Whether anything has changed."""

    def newest(self) -> tuple[object, Problems]:
        """Return what the newest wave came to, another object after each, and the problems known by now."""

    def answers(self) -> int:
        """Return how many responses proxies have acknowledged or rejected since the server began."""


class StreamReading(Protocol):
    """The open streams."""

    def streams(self) -> tuple[StreamStatus, ...]:
        """Return the open streams."""


class SnapshotReading(Protocol):
    """What proxies are served."""

    def snapshot(self, name: ProxyName) -> Snapshot | None:
        """Return what is published for a proxy; what would be, without secrets, for one that is not here."""


class OriginReading(Protocol):
    """What resources are made from."""

    def objects_behind(
        self, name: ProxyName, type_url: TypeUrl, resource: ResourceName
    ) -> tuple[InputObject, ...]:
        """Return the inputs that a proxy's resource was made from, sorted; none if there is no such."""


class PushReading(Protocol):
    """What proxies were sent, one response after the other."""

    def pushes(self, name: ProxyName) -> tuple[Push, ...]:
        """Return the last responses that a proxy was sent, newest first."""

    def replaced(self, type_url: TypeUrl, resource: ResourceName, version: Version) -> Resource | None:
        """Return an earlier version of a resource, None where it is not kept (any more), or is a secret."""


class RejectionReading(Protocol):
    """What proxies reject, or cannot take."""

    def rejected(self, name: ProxyName) -> tuple[Reference, ...]:
        """Return what a proxy has rejected and is withheld from it, sorted by type and name."""

    def refusal(self, name: ProxyName, type_url: TypeUrl, resource: ResourceName) -> str:
        """Return why a proxy rejected a resource: its words, then the object at fault; empty if unknown."""

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the parts of policy that are not in force for some proxies, sorted by object and match."""

    def unreceived(self, name: ProxyName) -> str:
        """Return which response a proxy may not be able to take, empty if there is none."""

    def failure(self, name: ProxyName) -> str:
        """Return why a proxy's group could not be computed, empty where it was."""


class CertificateReading(Protocol):
    """Certificates, never their keys."""

    def certificates(self) -> Mapping[ServiceIdentity, ServiceCertificate]:
        """Return the service certificates in force."""

    def held_certificate(self, name: ProxyName) -> HeldCertificate | None:
        """Return the service certificate that a proxy has acknowledged, None where none is known."""

    def trust_bundle(self) -> bytes:
        """Return the roots that proxies check peers against, as PEM."""

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return the proxy certificates."""

    def authority(self) -> AuthorityStatus:
        """Return who signs them."""


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
    """Everything the pages show. All answers are immutable pictures of one moment."""
