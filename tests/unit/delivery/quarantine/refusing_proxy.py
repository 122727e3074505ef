"""A proxy that refuses some units of policy, and its policies: no sockets, no clock."""

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from catalog.policy.units import Unit, UnitId, unit_id
from catalog.policy.values.inbound import Access, AccessRule, EveryoneInTheMesh, InboundPort
from catalog.policy.values.interception import InterceptionKind, SocketAddress
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy, ReachableServices
from catalog.policy.values.route_actions import WeightedBackend
from catalog.policy.values.route_table import RouteEntry
from catalog.policy.values.terms import TlsRange
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.quarantine.record import Moment
from meshwright.delivery.quarantine.reduced_snapshot import piece_of, units_of
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from meshwright.mesh.config import TlsVersion
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceAccountName, ServiceName, TrustDomain
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.retries import Retries
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.service import Protocol, ServiceKey
from meshwright.sidecars.envoy.empty_resources import empty
from tests.meshes.resources import resources
from tests.meshes.route_entries import entry
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import (
    CLUSTER,
    LISTENER,
    ROUTE,
    SECRET,
    TYPES,
    Reference,
    Resource,
    TypeUrl,
    Version,
    is_another_version,
)
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Rejection, Response

NODE, GROUP = NodeKey("a.shop.default"), GroupKey("shop")
SHOP = ServiceKey(Namespace("default"), ServiceName("shop"))
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
Admitted = frozenset[tuple[int, str, str]]
"""Who is admitted: port, principal, and the request's name, `*` for all."""


def identity(name: str) -> ServiceIdentity:
    """Return an identity."""
    return ServiceIdentity(Namespace("default"), ServiceAccountName(name))


def match(name: str) -> HTTPMatch:
    """Return a match."""
    return HTTPMatch(name, f"/{name}")


def rule(source: str, *matches: str) -> AccessRule:
    """Return the rule of a TrafficTarget; without matches it admits everything."""
    http_matches = tuple(map(match, matches)) or None
    by = ObjectKey(TRAFFIC_TARGET, Namespace("default"), f"from-{source}")
    return AccessRule(by, (identity(source),), http_matches)


def port(number: int, protocol: Protocol, access: Access) -> InboundPort:
    """Return an inbound port of the workload's one service."""
    application = SocketAddress(IpAddress("127.0.0.1"), Port(number))
    return InboundPort(Port(number), protocol, (SHOP,), application, access)


def split(name: str, of: str | None = None) -> RouteEntry:
    """Return a split of calls to the shop: of requests with this match, or of all requests."""
    by = PolicyKey(Namespace("default"), name)
    return entry(WeightedBackend(SHOP, "80", 1), split=by, match=None if of is None else match(of))


def policy(
    *inbound: InboundPort,
    splits: Collection[RouteEntry] = (),
    ciphers: str = "",
    retries: Retries | None = None,
) -> ProxyPolicy:
    """Return a policy with these inbound ports, and with the shop called by these splits and retries."""
    tls = TlsRange(TlsVersion.V1_2, TlsVersion.V1_3, (ciphers,) if ciphers else ())
    itself = () if any(not of.matches for of in splits) else (entry(WeightedBackend(SHOP, "80", 1)),)
    table = (*splits, *itself)
    called = OutboundService(SHOP, Port(80), Protocol.HTTP, table, (IpAddress("10.0.0.9"),), retries=retries)
    return ProxyPolicy(
        identity("shop"),
        SHOP,
        TrustDomain("cluster.local"),
        InterceptionKind.TRANSPARENT,
        tls,
        inbound,
        (ReachableServices.from_sorted((called,)),) if splits or retries is not None else (),
    )


def snapshot(of: ProxyPolicy) -> Snapshot:
    """Return the snapshot of a policy, with empty resources for its other references."""
    result = resources(of)
    there = {(resource.type_url, resource.name) for resource in result}
    wanted = {key for resource in result for key in resource.references} - there
    return Snapshot.of((*result, *(Resource(*key, Version("1"), b"") for key in sorted(wanted))))


def admitted(result: Snapshot | Mapping[Reference, Resource]) -> Admitted:
    """Return the callers that resources admit: HTTP by its routes, other protocols by the listener."""
    those = result.values() if isinstance(result, Mapping) else _of(result)
    return frozenset(item for resource in those for item in _admitted(resource))


def _of(result: Snapshot) -> Iterator[Resource]:
    return (resource for type_url in result.types() for resource in result.ordered(type_url))


def _admitted(resource: Resource) -> Iterator[tuple[int, str, str]]:
    piece = piece_of(resource)
    if piece is None or resource.type_url not in (LISTENER, ROUTE):
        return
    for argument in piece.arguments:
        for inbound in argument.inbound if isinstance(argument, ProxyPolicy) else (argument,):
            if isinstance(inbound, InboundPort) and inbound.protocol.is_http == (resource.type_url == ROUTE):
                yield from _of_port(inbound)


def _of_port(inbound: InboundPort) -> Iterator[tuple[int, str, str]]:
    if isinstance(inbound.access, EveryoneInTheMesh):
        yield inbound.port, "*", "*"
        return
    for access_rule in inbound.access.rules:
        for principal, which in itertools.product(access_rule.callers, access_rule.matches or (None,)):
            yield inbound.port, str(principal), "*" if which is None else which.name


def covers(allowed: Admitted, some: Admitted) -> bool:
    """Return whether everything that `some` admits is allowed."""
    return all(
        not {(number, who, what), (number, who, "*"), (number, "*", "*")}.isdisjoint(allowed)
        for number, who, what in some
    )


@dataclass
class RefusingProxyPlane:
    """A control plane and its one proxy, which refuses responses with guilty units.

    A rejection of routes does not name the route; a rejection of listeners and clusters does, and the others
    are accepted. `nacks` and `pushes` are counts.
    """

    guilty: frozenset[Unit] = frozenset()
    guilty_frames: frozenset[str] = frozenset()
    verdicts: tuple[Verdict, ...] = ()
    held: dict[Reference, Resource] = field(default_factory=dict)
    nacks: int = 0
    pushes: int = 0
    now: float = 0.0

    def __post_init__(self) -> None:
        """Start with nothing published."""
        self.quarantine = Quarantine(empty, verdicts=self.verdicts, now=lambda: self.now, jitter=lambda: 0.0)
        self.published = PublishedSnapshots()
        self._served: PublishedSnapshots = PublishedSnapshots()
        self._unsure: set[Reference] = set()

    @property
    def served(self) -> Snapshot:
        """Return the snapshot for the proxy."""
        result = self._served.snapshot(NODE)
        assert result is not None
        return result

    def publish(self, of: ProxyPolicy) -> None:
        """Serve another policy."""
        step = Step({GROUP: snapshot(of)}, {NODE: GROUP})
        self.published = step.after(self.published)
        self._serve(self.quarantine.after(step))

    def settle(self) -> Iterator[None]:
        """Push and answer until nothing is left to push; yield after each answer."""
        while [type_url for type_url in TYPES if self._push(type_url)]:
            yield

    def reconnect(self) -> None:
        """Lose the stream and all held resources, like a new Envoy."""
        self.held.clear()
        self._serve(self.quarantine.opened(NODE))

    def leave(self, *, known: bool = True) -> None:
        """Disconnect until the snapshot is dropped; `known` tells if the workload still exists."""
        self.held.clear()
        step = Step({GROUP: None}, {NODE: None}, absent=frozenset({NODE} if known else ()))
        self.published = step.after(self.published)
        self._serve(self.quarantine.after(step))

    def out(self) -> frozenset[UnitId]:
        """Return the units of policy that are excluded for certain."""
        return frozenset(
            unit_id(excluded_unit.unit)
            for excluded_unit in self.quarantine.findings.units_out()
            if excluded_unit.certain
        )

    def later(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds
        self._serve(self.quarantine.on_time(self.now))

    def retry(self) -> None:
        """Offer everything again."""
        self._serve(self.quarantine.retry(NODE))

    def _push(self, type_url: TypeUrl) -> bool:
        there = self.served.resources(type_url)
        for key in [item for item in self.held if item[0] == type_url and item[1] not in there]:
            del self.held[key]
        news = [
            resource
            for resource in self.served.ordered(type_url)
            if is_another_version(self.held.get((type_url, resource.name)), resource)
            or (type_url, resource.name) in self._unsure
        ]
        if not news:
            return False
        self.pushes += 1
        bad = [resource for resource in news if self._refuses(resource)]
        names = type_url in (CLUSTER, LISTENER)
        taken = [] if bad and not names else [resource for resource in news if resource not in bad]
        self.held |= {(type_url, resource.name): resource for resource in taken}
        self._unsure = {key for key in self._unsure if key[0] != type_url}
        rejection = None
        if bad:
            self.nacks += 1
            self._unsure |= {(type_url, resource.name) for resource in news if resource not in taken}
            text = f"Error adding/updating listener(s) {', '.join(item.name for item in bad)}: no"
            rejection = Rejection(13, text if names else "no")
        response = Response(type_url, self.served.version(type_url), Nonce("1"), tuple(news))
        step = self.quarantine.answered(NODE, response, rejection, lambda: Moment(self.now, EPOCH))
        self._serve(step)
        return True

    def _refuses(self, resource: Resource) -> bool:
        if resource.type_url == SECRET:
            return False
        units = frozenset(units_of(resource).values())
        piece = piece_of(resource)
        ciphers = {
            cipher_suite
            for argument in (piece.arguments if piece is not None else ())
            if isinstance(argument, ProxyPolicy)
            for cipher_suite in argument.tls.cipher_suites
        }
        return bool(units & self.guilty or ciphers & self.guilty_frames)

    def _serve(self, step: Step | None) -> None:
        if step is not None:
            self._served = self.quarantine.served()
