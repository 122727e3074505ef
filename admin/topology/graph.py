"""The mesh as a graph: services, and calls between them that are allowed, seen, or both."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from catalog.policy.access import Nothing, grant
from catalog.policy.outbound import protocol_of
from catalog.policy.splits import in_force as splits_in_force
from catalog.policy.splits import known_weights
from catalog.relations.endpoints import endpoints
from catalog.relations.groups import members
from catalog.relations.permissive import is_permissive
from catalog.store.smi import splits_by_apex, splits_by_backend, targets
from catalog.store.view import View
from mesh.identity import ProxyName, ServiceIdentity
from mesh.kinds import MESH_CONFIG
from mesh.names import Namespace, Port, ServiceName
from mesh.objects import ObjectKey
from mesh.policy import TrafficTarget
from mesh.service import Protocol, ServiceKey, ServicePort
from observed.figures import Called, Direction, Figures, Kind
from observed.traffic import BySource, Caller

OUTSIDE: Final = ""
"""The namespace of what is outside the mesh, and of what stands for many."""
Name = tuple[str, str]
"""Namespace and name."""
Between = tuple[Name, Name]


@dataclass(slots=True)
class Proxies:
    """How many sidecars of a service there should be, how many are here, and how many of these in step."""

    known: int = 0
    connected: int = 0
    in_step: int = 0

    def add(self, other: "Proxies") -> None:
        """Count others among them."""
        self.known += other.known
        self.connected += other.connected
        self.in_step += other.in_step


@dataclass(frozen=True, slots=True)
class Weight:
    """What a TrafficSplit has for one of its backends: its part of all weights, 0 to 1."""

    split: str
    part: float


@dataclass(slots=True)
class Calls:
    """Calls of one service to another.

    `by` are the objects that allow them. `figures` is what callers have counted, None of nothing. `tls` and
    `opened` are connections of the last hour: how many shook hands in TLS, of how many. Between the apex of a
    TrafficSplit and its backends there are `weights`, and `share` is which part of the calls a backend had.
    """

    by: set[str] = field(default_factory=set)
    figures: Figures | None = None
    tls: int = 0
    opened: int = 0
    weights: tuple[Weight, ...] = ()
    share: float | None = None

    @property
    def mtls(self) -> bool | None:
        """Whether mTLS was seen; None where no connection was opened lately."""
        return True if self.tls else False if self.opened else None

    def count(self, more: Figures) -> None:
        """Count more calls."""
        self.figures = more if self.figures is None else self.figures + more


@dataclass(frozen=True, slots=True)
class Graph:
    """Services with their sidecars, and calls between them; of what is outside the name is all."""

    nodes: Mapping[Name, Proxies]
    edges: Mapping[Between, Calls]


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Where a proxy stands."""

    name: ProxyName
    connected: bool
    in_step: bool


@dataclass(frozen=True, slots=True)
class Counted:
    """What proxies counted over the span that is asked for, and over the last hour."""

    lately: Mapping[BySource, Figures]
    hour: Mapping[BySource, Figures]


def graph(view: View, sidecars: Iterable[Sidecar], counted: Counted) -> Graph:
    """Return the graph of the whole mesh. Its cost grows with what is in it: not for the event loop."""
    nodes = {(str(key.namespace), str(key.name)): Proxies() for key in view.services}
    for each in sidecars:
        of = nodes.setdefault((str(each.name.namespace), str(each.name.service)), Proxies())
        of.add(Proxies(1, each.connected, each.in_step))
    edges = defaultdict[Between, Calls](Calls)
    for between, by in _allowed(view):
        edges[between].by.add(by)
    direct, behind = _told(counted.lately, edges)
    _split(view, edges, direct, behind)
    _secured(view, counted.hour, edges)
    for ends in edges:
        for end in ends:
            nodes.setdefault(end, Proxies())
    for between, calls in edges.items():
        if calls.figures is not None and (by := _permissive(view, between)):
            calls.by.add(by)
    return Graph(dict(sorted(nodes.items())), dict(sorted(edges.items())))


def _allowed(view: View) -> Iterable[tuple[Between, str]]:
    """Yield who may call what by which TrafficTarget; an apex is called for the sake of its backends.

    A target whose rules admit nothing on any port of a service allows no call to it.
    """
    callers = defaultdict[ServiceIdentity, set[Name]](set)
    called = defaultdict[ServiceIdentity, set[ServiceKey]](set)
    for group in members(view):
        callers[group.identity].add(_name(group.primary))
        called[group.identity].update(group.services)
    for target in targets(view).values():
        if is_permissive(view, target.destination.namespace):
            continue
        direct = {each for each in called[target.destination] if _admits(view, target, each)}
        apexes = {split.apex for each in direct for split in splits_by_backend(view).found(each)}
        for source in target.sources:
            for caller in callers[source]:
                for service in direct | apexes:
                    yield (caller, _name(service)), f"TrafficTarget {target.key}"


def _admits(view: View, target: TrafficTarget, key: ServiceKey) -> bool:
    """Say whether a target lets anything pass to its destination's workloads behind a service."""
    service = view.services.get(key)
    return service is not None and any(
        grant(view, target, at, protocol_of(view, key, port)) != Nothing()
        for port in service.ports
        for at in _called_at(view, key, port, target.destination)
    )


def _called_at(view: View, key: ServiceKey, port: ServicePort, server: ServiceIdentity) -> set[Port]:
    """Return the ports at which workloads are called; of those that get no traffic yet, if it is a number."""
    found = {each.port for each in endpoints(view, key, port) if each.identity == server}
    number = str(port.target_port)
    return found or ({Port(int(number))} if number.isdigit() else set())


def _permissive(view: View, between: Between) -> str:
    """Return the object by which calls need no other; empty where there is none."""
    namespace = Namespace(between[1][0])
    if namespace == OUTSIDE or not is_permissive(view, namespace):
        return ""
    return f"{MESH_CONFIG if view.config.permissive else ObjectKey.of_namespace(namespace)} (permissive)"


_ByBackend = Mapping[Between, Figures]


def _told(
    found: Mapping[BySource, Figures], edges: defaultdict[Between, Calls]
) -> tuple[_ByBackend, _ByBackend]:
    """Count calls; return what was called by its own name, and what of all calls backends had."""
    behind = defaultdict[Between, Figures](Figures)
    for (caller, calls), figures in found.items():
        between = (_caller(caller), _called(calls.called))
        if calls.kind is Kind.BACKEND:
            behind[between] += figures
        elif calls.kind is Kind.EDGE and calls.direction is Direction.OUTBOUND:
            edges[between].count(figures)
    return {between: calls.figures for between, calls in edges.items() if calls.figures}, behind


def _secured(view: View, found: Mapping[BySource, Figures], edges: defaultdict[Between, Calls]) -> None:
    """Note of connections to backends whether they are in TLS: between all that a call goes by."""
    for (caller, calls), figures in found.items():
        if calls.kind is not Kind.BACKEND:
            continue
        backend, source = _called(calls.called), _caller(caller)
        key = ServiceKey(Namespace(backend[0]), ServiceName(backend[1]))
        apexes = [_name(split.apex) for split in splits_by_backend(view).found(key)]
        ways = {(source, end) for end in (backend, *apexes)} | {(apex, backend) for apex in apexes}
        for between in ways & edges.keys():
            edges[between].tls += figures.tls
            edges[between].opened += max(0, figures.opened - figures.failed)


def _split(view: View, edges: defaultdict[Between, Calls], direct: _ByBackend, behind: _ByBackend) -> None:
    """Note of TrafficSplits what of all calls to the apex each backend should have, and what it had."""
    callers = defaultdict[Name, set[Name]](set)
    for caller, service in direct:
        callers[service].add(caller)
    for apex in splits_by_apex(view):
        weights = defaultdict[Name, list[Weight]](list)
        for split in splits_in_force(view, apex, Protocol.HTTP):
            known = known_weights(view, split)
            for backend, weight in known.items():
                weights[_name(backend)].append(Weight(str(split.key), weight / sum(known.values())))
        name = _name(apex)
        had = {
            each: sum(_requests(caller, each, name, direct, behind) for caller in callers[name])
            for each in weights
        }
        for end in weights.keys() - {name}:
            calls = edges[name, end]
            calls.weights = tuple(weights[end])
            calls.share = had[end] / sum(had.values()) if sum(had.values()) else None


def _requests(caller: Name, backend: Name, apex: Name, direct: _ByBackend, behind: _ByBackend) -> int:
    """Return the calls of an apex that a backend had, of one caller: what it did not call by its own name."""

    def size(figures: Figures) -> int:
        return figures.requests or figures.opened

    every = behind.get((caller, backend))
    own = direct.get((caller, backend)) if backend != apex else None
    return 0 if every is None else max(0, size(every) - (0 if own is None else size(own)))


def _name(key: ServiceKey) -> Name:
    return (str(key.namespace), str(key.name))


def _caller(found: Caller) -> Name:
    return (found.namespace, found.service)


def _called(found: Called) -> Name:
    return (found.namespace or OUTSIDE, found.service)
