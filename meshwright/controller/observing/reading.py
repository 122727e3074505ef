"""Data of the running server for the admin pages."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from catalog.policy.provenance import InputObject
from catalog.relations.groups import group_of
from catalog.store.inventory import holder_of
from catalog.store.view import View
from certs.custody import AuthorityWithLedger
from certs.keys.material import ServiceCertificate
from certs.ledger.entry import LedgerEntry
from certs.roots.succeeding_authority import AuthorityStatus
from meshwright.admin.readers import LateMoment
from meshwright.controller.settings.settings import Settings
from meshwright.delivery.assembly import Delivery
from meshwright.delivery.history.push import Push
from meshwright.delivery.proxies.held_certificates import HeldCertificate
from meshwright.delivery.proxies.status import ProxyStatus
from meshwright.delivery.quarantine.exclusions import LeftOut, parts_left_out
from meshwright.delivery.quarantine.problems import clause
from meshwright.delivery.snapshots.group_snapshots import group_name
from meshwright.enrolment.ejections import Ejections
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problems
from meshwright.providers.contract import Counts, Freshness
from meshwright.providers.sources import Sources
from meshwright.traffic.traffic import Traffic
from xds.cache import NodeKey
from xds.protocol.resources.resource import Reference, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.stream_status import StreamStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReading:
    """Reader of the server's parts; `statuses` returns open streams, `late` the delays of the event loop."""

    delivery: Delivery
    sources: Sources
    opened: AuthorityWithLedger
    statuses: Callable[[], tuple[StreamStatus, ...]]
    late: Callable[[], tuple[LateMoment, ...]]
    clock: Callable[[], datetime]
    read_settings: Callable[[], Settings]
    listens: Callable[[], Mapping[str, str]]
    ejections: Ejections
    observed: Traffic

    def late_moments(self) -> tuple[LateMoment, ...]:
        """Return the last delays of the event loop."""
        return self.late()

    def streams(self) -> tuple[StreamStatus, ...]:
        """Return the open streams."""
        return self.statuses()

    def proxies(self) -> tuple[ProxyStatus, ...]:
        """Return every connected, expected and former proxy."""
        return self.delivery.registry.statuses(self.delivery.quarantine.streams.any_of)

    def ejected(self) -> Mapping[str, tuple[ProxyName, ...]]:
        """Return the proxies with ejected endpoints, by the IP address of the endpoint."""
        return self.ejections.by_address(self.clock())

    def traffic(self) -> Traffic:
        """Return the calls counted by sidecars, with times of `time.monotonic`."""
        return self.observed

    def dead_after(self) -> timedelta:
        """Return the time after which a disconnected proxy, ejected by callers, counts as dead."""
        return timedelta(seconds=self.read_settings().dead_after_seconds)

    def snapshot(self, name: ProxyName) -> Snapshot | None:
        """Return a proxy's snapshot.

        For a disconnected proxy the snapshot is computed now.
        """
        node = NodeKey(str(name))
        result, model = self.delivery.cache.snapshot(node), self.delivery.loop.model
        return model.serving.previewed(node) if result is None and model is not None else result

    def pushes(self, name: ProxyName) -> tuple[Push, ...]:
        """Return the last responses to a proxy, newest first."""
        node = NodeKey(str(name))
        # The latest records may still be in the journal.
        self.delivery.journal.settle((node,))
        return self.delivery.history.pushes(node, time.monotonic(), self.clock())

    def replaced(self, type_url: TypeUrl, resource: ResourceName, version: Version) -> Resource | None:
        """Return an earlier version of a resource."""
        return self.delivery.history.replaced(type_url, resource, version)

    def rejected(self, name: ProxyName) -> tuple[Reference, ...]:
        """Return the resources that a proxy has rejected and that are withheld."""
        return self.delivery.quarantine.findings.rejected_by(NodeKey(str(name)))

    def refusal(self, name: ProxyName, type_url: TypeUrl, resource: ResourceName) -> str:
        """Return the proxy's reason for rejecting a resource."""
        model = self.delivery.loop.model
        resources = self.delivery.quarantine.findings.rejections_of(NodeKey(str(name)), (type_url, resource))
        return clause(model.serving, resources[0]) if model is not None and resources else ""

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the parts of policy objects excluded for some proxies after rejections."""
        model = self.delivery.loop.model
        return (
            ()
            if model is None
            else parts_left_out(model.serving, self.delivery.quarantine.findings.units_out())
        )

    def objects_behind(
        self, name: ProxyName, type_url: TypeUrl, resource: ResourceName
    ) -> tuple[InputObject, ...]:
        """Return the objects from which a proxy's resource is computed."""
        model = self.delivery.loop.model
        return () if model is None else model.serving.behind(NodeKey(str(name)), type_url, resource)

    def unreceived(self, name: ProxyName) -> str:
        """Return the large responses that a proxy may be unable to receive."""
        proxy = self.delivery.registry.find(NodeKey(str(name)))
        large = () if proxy is None else proxy.large.unanswered()
        return "; ".join(str(large_response) for large_response in large if large_response.is_suspect)

    def failure(self, name: ProxyName) -> str:
        """Return the reason why a proxy's group could not be computed, else an empty text."""
        state = self.delivery.loop.state
        if state.view is None or not state.published.failed:
            return ""
        workload = holder_of(state.view, name)
        if workload is None:
            return ""
        failed = state.published.failed.get(group_name(group_of(state.view, workload)))
        return failed.error if failed is not None else ""

    def view(self) -> View | None:
        """Return the newest view of the mesh, or `None` before the first wave."""
        return self.delivery.loop.state.view

    def objects(self) -> Mapping[ObjectKey, SourcedObject]:
        """Return the active objects of all sources by key."""
        return self.sources.objects()

    async def problems(self) -> Problems:
        """Return the current problems of objects, after a pending search for problems has finished."""
        await self.delivery.loop.linting.finish()
        return self.delivery.loop.state.problems

    def newest(self) -> tuple[object, Problems]:
        """Return the newest state of the mesh, with the problems of objects found so far."""
        state = self.delivery.loop.state
        return state, state.problems

    def answers(self) -> int:
        """Return the number of ACKs and NACKs received from proxies since the start."""
        return self.delivery.history.answers

    def failures(self) -> tuple[tuple[str, str, bool], ...]:
        """Return the groups of proxies for which the computation of configuration has failed.

        Each entry has the group's name, the error, and whether all proxies of the group keep an earlier
        configuration.
        """
        return tuple(
            (failure.group, failure.error, failure.kept == failure.proxies)
            for failure in self.delivery.loop.state.published.failures
        )

    def certificates(self) -> Mapping[ServiceIdentity, ServiceCertificate]:
        """Return the active service certificate of each service identity."""
        return self.delivery.certificates.certificates

    def held_certificate(self, name: ProxyName) -> HeldCertificate | None:
        """Return the acknowledged service certificate of a proxy."""
        proxy = self.delivery.registry.find(NodeKey(str(name)))
        return None if proxy is None else self.delivery.held_certificates.certificate(proxy)

    def trust_bundle(self) -> bytes:
        """Return the mesh's CA certificates as PEM."""
        return self.opened.authority.trust_bundle()

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return the entries of all proxy certificates."""
        return self.opened.ledger.entries()

    def authority(self) -> AuthorityStatus:
        """Return the status of the CA for proxy certificates."""
        return self.opened.opened_authority.standing()

    def freshness(self) -> Mapping[str, Freshness]:
        """Return the freshness of each source: the times of the last event and last full read."""
        return {source.name: source.freshness() for source in self.sources.all}

    def counts(self) -> Mapping[str, Counts]:
        """Return the number of objects in each source."""
        return {source.name: source.counts() for source in self.sources.all}

    def listening(self) -> Mapping[str, str]:
        """Return the addresses at which the server listens, by name."""
        return self.listens()

    def settings(self) -> Mapping[str, object]:
        """Return the server's settings."""
        return self.read_settings().model_dump(mode="json")
