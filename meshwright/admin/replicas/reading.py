"""Reader of pages and API over all servers; implements `meshwright.admin.readers.MeshReading`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from catalog.policy.provenance import InputObject
from catalog.store.view import View
from certs.keys.material import ServiceCertificate
from certs.ledger.entry import LedgerEntry
from certs.roots.succeeding_authority import AuthorityStatus
from meshwright.admin.readers import LateMoment, MeshReading
from meshwright.admin.replicas.facts import ProxyFacts, ReplicaFacts
from meshwright.admin.replicas.problems import of_others
from meshwright.admin.replicas.statuses import PlacedStatus, placed
from meshwright.admin.replicas.traffic import MergedTraffic, TrafficFacts
from meshwright.delivery.history.push import Push
from meshwright.delivery.proxies.held_certificates import HeldCertificate
from meshwright.delivery.proxies.status import ProxyStatus
from meshwright.delivery.quarantine.exclusions import LeftOut
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problems, ordered
from meshwright.providers.contract import Counts, Freshness
from meshwright.traffic.traffic import TrafficStatistics
from xds.protocol.resources.resource import Reference, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.stream_status import StreamStatus


@dataclass(frozen=True, slots=True)
class ReplicasReading:
    """Picture of one moment over all servers.

    Facts about a proxy come from the server where it is or was connected last. What every server computes
    from its input comes from this server, `own`. For example, a rejected resource comes from the server that
    got the NACK, and the snapshot of the proxy from this one. `facts` and `traffic_facts` are those of
    other servers.
    """

    replica: str
    own: MeshReading
    own_statuses: tuple[ProxyStatus, ...]
    facts: Mapping[str, ReplicaFacts]
    now: datetime
    traffic_facts: Mapping[str, TrafficFacts] = field(default_factory=dict)
    _placed: dict[ProxyName, PlacedStatus] = field(init=False, default_factory=dict, repr=False)
    _of_others: dict[ProxyName, ProxyFacts] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Find the server of each proxy; for many proxies in a thread."""
        statuses = {name: [of.status for of in facts.proxies] for name, facts in self.facts.items()}
        for item in placed(self.replica, {**statuses, self.replica: self.own_statuses}, self.now):
            self._placed[item.status.name] = item
        # A moved proxy is in the facts of two servers, and only the present server knows its state.
        for replica, facts in self.facts.items():
            for of in facts.proxies:
                if self.replica_of(of.status.name) == replica:
                    self._of_others[of.status.name] = of

    def replica_of(self, name: ProxyName) -> str | None:
        """Return the server where a proxy is or was connected last; None for one that never was."""
        item = self._placed.get(name)
        return None if item is None else item.replica

    def is_of_another(self, name: ProxyName) -> bool:
        """Return whether another server knows a proxy better than this one."""
        return self.replica_of(name) not in (None, self.replica)

    def proxies(self) -> tuple[ProxyStatus, ...]:
        """Return every proxy of the mesh, sorted by name."""
        return tuple(item.status for item in self._placed.values())

    def streams(self) -> tuple[StreamStatus, ...]:
        """Return the open streams at all servers; those at other servers lack the names of resources."""
        return (*self.own.streams(), *(stream for of in self._all() for stream in of.streams))

    def _all(self) -> Iterator[ProxyFacts]:
        return (of for facts in self.facts.values() for of in facts.proxies)

    def ejected(self) -> Mapping[str, tuple[ProxyName, ...]]:
        """Return the proxies that report an ejected endpoint to any server, by address."""
        result = {address: set(names) for address, names in self.own.ejected().items()}
        for facts in self.facts.values():
            for address, names in facts.ejected.items():
                result.setdefault(address, set()).update(names)
        return {address: tuple(sorted(names)) for address, names in result.items()}

    def rejected(self, name: ProxyName) -> tuple[Reference, ...]:
        """Return the resources that a proxy has rejected."""
        of = self._of_others.get(name)
        if of is None:
            return self.own.rejected(name)
        return tuple((item.type_url, item.name) for item in of.rejected)

    def refusal(self, name: ProxyName, type_url: TypeUrl, resource: ResourceName) -> str:
        """Return a proxy's error for a rejected resource, then the object at fault; empty if unknown."""
        of = self._of_others.get(name)
        if of is None:
            return self.own.refusal(name, type_url, resource)
        wanted = (type_url, resource)
        return next((item.refusal for item in of.rejected if (item.type_url, item.name) == wanted), "")

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the parts of policy that are not in force for some proxies of any server."""
        return merged_left_out(
            (*self.own.left_out(), *(item for facts in self.facts.values() for item in facts.left_out))
        )

    def unreceived(self, name: ProxyName) -> str:
        """Return the large responses that a proxy may be unable to receive."""
        of = self._of_others.get(name)
        return self.own.unreceived(name) if of is None else of.unreceived

    def failure(self, name: ProxyName) -> str:
        """Return the error if the computation of the group of a proxy failed."""
        of = self._of_others.get(name)
        return self.own.failure(name) if of is None else of.failure

    def failures(self) -> tuple[tuple[str, str, bool], ...]:
        """Return the groups that failed at any server; a group that failed at several is returned once."""
        result = dict.fromkeys(self.own.failures())
        for facts in self.facts.values():
            result |= dict.fromkeys(facts.failures)
        return tuple(result)

    def held_certificate(self, name: ProxyName) -> HeldCertificate | None:
        """Return the service certificate that a proxy has acknowledged."""
        of = self._of_others.get(name)
        return self.own.held_certificate(name) if of is None else of.held

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return the entries of all proxy certificates, with the last use at any server."""
        seen: dict[str, datetime] = {}
        for facts in self.facts.values():
            for serial, at in facts.last_seen.items():
                seen[serial] = max(seen.get(serial, at), at)
        return tuple(_seen(entry, seen.get(entry.serial)) for entry in self.own.ledger())

    async def problems(self) -> Problems:
        """Return the problems of the input, and those that any server's proxies cause."""
        own = await self.own.problems()
        others = (problem for facts in self.facts.values() for problem in facts.problems)
        return ordered((*own, *of_others(own, others)))

    def answers(self) -> int:
        """Return the number of ACKs and NACKs received by all servers."""
        return self.own.answers() + sum(facts.answers for facts in self.facts.values())

    def traffic(self) -> TrafficStatistics:
        """Return the sum of the traffic statistics of all servers."""
        others = tuple(self.traffic_facts[replica] for replica in sorted(self.traffic_facts))
        return MergedTraffic(self.own.traffic(), others) if others else self.own.traffic()

    def dead_after(self) -> timedelta:
        """Return the time after which a disconnected proxy counts as dead, if callers have ejected it."""
        return self.own.dead_after()

    def view(self) -> View | None:
        """Return this server's newest view of the mesh."""
        return self.own.view()

    def newest(self) -> tuple[object, Problems]:
        """Return this server's state after the newest wave, and its problems."""
        return self.own.newest()

    def objects(self) -> Mapping[ObjectKey, SourcedObject]:
        """Return the mesh objects in use."""
        return self.own.objects()

    def snapshot(self, name: ProxyName) -> Snapshot | None:
        """Return the snapshot that this server serves to a proxy, or would serve."""
        return self.own.snapshot(name)

    def objects_behind(
        self, name: ProxyName, type_url: TypeUrl, resource: ResourceName
    ) -> tuple[InputObject, ...]:
        """Return the sorted inputs of a proxy's resource."""
        return self.own.objects_behind(name, type_url, resource)

    def pushes(self, name: ProxyName) -> tuple[Push, ...]:
        """Return the last responses of this server to a proxy, newest first."""
        return self.own.pushes(name)

    def replaced(self, type_url: TypeUrl, resource: ResourceName, version: Version) -> Resource | None:
        """Return an earlier version of a resource that this server has stored."""
        return self.own.replaced(type_url, resource, version)

    def certificates(self) -> Mapping[ServiceIdentity, ServiceCertificate]:
        """Return the service certificate used for each identity."""
        return self.own.certificates()

    def trust_bundle(self) -> bytes:
        """Return the CA certificates by which proxies verify their peers, as PEM."""
        return self.own.trust_bundle()

    def authority(self) -> AuthorityStatus:
        """Return the status of the CA that signs proxy certificates."""
        return self.own.authority()

    def late_moments(self) -> tuple[LateMoment, ...]:
        """Return the last delays of this server's event loop."""
        return self.own.late_moments()

    def settings(self) -> Mapping[str, object]:
        """Return this server's settings."""
        return self.own.settings()

    def listening(self) -> Mapping[str, str]:
        """Return the addresses at which this server listens."""
        return self.own.listening()

    def freshness(self) -> Mapping[str, Freshness]:
        """Return the freshness of each of this server's sources."""
        return self.own.freshness()

    def counts(self) -> Mapping[str, Counts]:
        """Return the number of objects in each of this server's sources."""
        return self.own.counts()


def merged_left_out(items: tuple[LeftOut, ...]) -> tuple[LeftOut, ...]:
    """Return one item for each part of policy, with the proxies of all; the first error message counts."""
    result: dict[tuple[ObjectKey, str], LeftOut] = {}
    for item in items:
        place = (item.object, repr(item.match))
        if (first := result.get(place)) is None:
            result[place] = item
            continue
        proxies = tuple(sorted({*first.proxies, *item.proxies}))
        replaced = tuple(sorted({*first.replaced, *item.replaced}))
        certain = first.certain or item.certain
        result[place] = replace(first, proxies=proxies, certain=certain, replaced=replaced)
    return tuple(result[place] for place in sorted(result))


def _seen(entry: LedgerEntry, at: datetime | None) -> LedgerEntry:
    # Each server notes the use of a certificate at its own streams only, so the latest time counts.
    if at is None or (entry.seen_at is not None and entry.seen_at >= at):
        return entry
    return replace(entry, seen_at=at)
