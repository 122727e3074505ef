"""What the pages read: protocols and values through which they see the rest, and change nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from catalog.policy.provenance import MadeFrom
from catalog.store.view import View
from certs.ledger.contract import LedgerEntry
from certs.material import ServiceCertificate
from delivery.history.push import Push
from delivery.proxies.status import ProxyStatus
from delivery.quarantine.left_out import LeftOut
from mesh.identity import ProxyName, ServiceIdentity
from mesh.objects import ObjectKey, Sourced
from mesh.problems import Problems
from providers.contract import Counts, Freshness
from xds.protocol.resource import Reference, Resource, ResourceName, TypeUrl, Version
from xds.protocol.snapshot import Snapshot
from xds.server.status import StreamStatus


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


class MeshReading(LoopReading, Protocol):
    """Everything the pages show. All answers are immutable pictures of one moment."""

    def streams(self) -> tuple[StreamStatus, ...]:
        """Return the open streams."""

    def proxies(self) -> tuple[ProxyStatus, ...]:
        """Return every proxy that is or should be here, sorted by name."""

    def snapshot(self, name: ProxyName) -> Snapshot | None:
        """Return what is published for a proxy."""

    def pushes(self, name: ProxyName) -> tuple[Push, ...]:
        """Return the last responses that a proxy was sent, newest first."""

    def replaced(self, type_url: TypeUrl, resource: ResourceName, version: Version) -> Resource | None:
        """Return an earlier version of a resource, None where it is not kept (any more), or is a secret."""

    def rejected(self, name: ProxyName) -> tuple[Reference, ...]:
        """Return what a proxy has rejected and is withheld from it, sorted by type and name."""

    def refusal(self, name: ProxyName, type_url: TypeUrl, resource: ResourceName) -> str:
        """Return why a proxy rejected a resource: its words, then the object at fault; empty if unknown."""

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the parts of policy that are not in force for some proxies, sorted by object and match."""

    def objects_behind(
        self, name: ProxyName, type_url: TypeUrl, resource: ResourceName
    ) -> tuple[MadeFrom, ...]:
        """Return the inputs that a proxy's resource was made from, sorted; none if there is no such."""

    def unreceived(self, name: ProxyName) -> str:
        """Return which response a proxy may not be able to take, empty if there is none."""

    def failure(self, name: ProxyName) -> str:
        """Return why a proxy's group could not be computed, empty where it was."""

    def view(self) -> View | None:
        """Return the newest view, None before the first."""

    def objects(self) -> Mapping[ObjectKey, Sourced]:
        """Return the objects in force."""

    def problems(self) -> Problems:
        """Return what is wrong with the input, sorted."""

    def failures(self) -> tuple[tuple[str, str, bool], ...]:
        """Return the groups that failed: name, error, whether a last good snapshot is kept."""

    def certificates(self) -> Mapping[ServiceIdentity, ServiceCertificate]:
        """Return the service certificates in force."""

    def trust_bundle(self) -> bytes:
        """Return the roots that proxies check peers against, as PEM."""

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return the proxy certificates."""

    def freshness(self) -> Mapping[str, Freshness]:
        """Return how fresh each source is, by its name."""

    def counts(self) -> Mapping[str, Counts]:
        """Return what each source holds, by its name; looks at all of it."""

    def settings(self) -> Mapping[str, object]:
        """Return the server's settings; none of them is a secret."""
