"""Graph of the mesh: services as nodes, and allowed or observed traffic as edges."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from catalog.store.view import View
from meshwright.admin.topology.allowed_edges import allowed, permissive
from meshwright.admin.topology.names import OUTSIDE, Between, Name, called_of, caller_of, name_of
from meshwright.admin.topology.shares import Weight, configured_shares, services_before
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.service import ServiceKey
from meshwright.traffic.statistics import OTHERS, Direction, Figures, Kind
from meshwright.traffic.traffic import BySource

MOST_UNVERIFIED: Final = 20
"""Maximum number of edges that policy does not allow, for each caller; those with most requests are kept."""
MOST_OUTSIDE: Final = 100
"""The same limit for traffic out of the mesh, because outside hosts and ports are known from reports only."""


@dataclass(slots=True)
class Proxies:
    """Numbers of sidecars of a service: known, connected, and in step."""

    known: int = 0
    connected: int = 0
    in_step: int = 0

    def add(self, other: "Proxies") -> None:
        """Add the numbers `other`: those of one sidecar to a service, or of a service to its namespace."""
        self.known += other.known
        self.connected += other.connected
        self.in_step += other.in_step


@dataclass(slots=True)
class Calls:
    """Traffic from one service to another.

    `by` are the objects that allow it. `figures` are the statistics of the callers, None without any.
    `verified` are the statistics that policy allows; for the rest the only evidence is the report of the
    caller's proxy. `tls` and `opened` count the TLS handshakes and the opened connections of the last hour.
    An edge from the apex of a TrafficSplit, or the parent of a route, to a backend has `weights`, and `share`
    is the observed part of the backend, from 0 to 1.
    """

    by: set[str] = field(default_factory=set)
    figures: Figures | None = None
    verified: Figures | None = None
    tls: int = 0
    opened: int = 0
    weights: tuple[Weight, ...] = ()
    share: float | None = None

    @property
    def mtls(self) -> bool | None:
        """Return True if mTLS was observed, else False; None if no connection was opened in the last hour."""
        return True if self.tls else False if self.opened else None

    def count(self, more: Figures) -> None:
        """Add traffic statistics reported by callers."""
        self.figures = more if self.figures is None else self.figures + more


@dataclass(frozen=True, slots=True)
class Graph:
    """Services with their sidecars, and the traffic between them; outside hosts have a name only."""

    nodes: Mapping[Name, Proxies]
    edges: Mapping[Between, Calls]


@dataclass(frozen=True, slots=True)
class Sidecar:
    """State of a proxy: connected, and in step with the published configuration."""

    name: ProxyName
    connected: bool
    in_step: bool


@dataclass(frozen=True, slots=True)
class EdgeCounts:
    """Traffic statistics reported by proxies: of the requested window (`lately`), and of the last hour."""

    lately: Mapping[BySource, Figures]
    hour: Mapping[BySource, Figures]


def graph(view: View, sidecars: Iterable[Sidecar], counted: EdgeCounts) -> Graph:
    """Return the graph of the whole mesh.

    The cost grows with the size of the mesh, so the function must not run on the event loop.
    """
    nodes = {(str(key.namespace), str(key.name)): Proxies() for key in view.services}
    for sidecar in sidecars:
        of = nodes.setdefault((str(sidecar.name.namespace), str(sidecar.name.service)), Proxies())
        of.add(Proxies(1, sidecar.connected, sidecar.in_step))
    edges = defaultdict[Between, Calls](Calls)
    for between, by in allowed(view):
        edges[between].by.add(by)
    behind = _add_requests(counted.lately, edges)
    for between, calls in edges.items():
        if calls.figures is not None and (by := permissive(view, between)):
            calls.by.add(by)
        calls.verified = calls.figures if calls.by else None
    # Only edges without policy are dropped, so the shares computed below stay exact.
    _bound(edges)
    direct = {between: calls.verified for between, calls in edges.items() if calls.verified}
    _split(view, edges, direct, behind)
    _secured(view, counted.hour, edges)
    for ends in edges:
        for end in ends:
            nodes.setdefault(end, Proxies())
    return Graph(dict(sorted(nodes.items())), dict(sorted(edges.items())))


_ByBackend = Mapping[Between, Figures]


def _add_requests(result: Mapping[BySource, Figures], edges: defaultdict[Between, Calls]) -> _ByBackend:
    """Add the requests reported by callers to `edges`; return the requests received by each backend."""
    behind = defaultdict[Between, Figures](Figures)
    for (caller, calls), figures in result.items():
        between = (caller_of(caller), called_of(calls.called))
        if calls.kind is Kind.BACKEND:
            behind[between] += figures
        elif calls.kind is Kind.EDGE and calls.direction is Direction.OUTBOUND:
            edges[between].count(figures)
    return behind


def _bound(edges: defaultdict[Between, Calls]) -> None:
    """Keep a bounded number of edges without policy for each caller, and add up the others.

    The destinations of such edges are names from reports: without a bound, one proxy could fill the graph.
    """
    for most, outside in ((MOST_UNVERIFIED, False), (MOST_OUTSIDE, True)):
        reported = defaultdict[Name, list[Between]](list)
        for between, calls in edges.items():
            if not calls.by and (between[1][0] == OUTSIDE) is outside and between[1] != _OTHERS:
                reported[between[0]].append(between)
        for source, result in reported.items():
            result.sort(key=lambda item: (-_weight(edges[item].figures), item))
            for between in result[most:]:
                edges[source, _OTHERS].count(edges.pop(between).figures or Figures())


_OTHERS: Final = called_of(OTHERS)


def _weight(figures: Figures | None) -> int:
    return 0 if figures is None else figures.requests or figures.opened


def _secured(view: View, result: Mapping[BySource, Figures], edges: defaultdict[Between, Calls]) -> None:
    """Count TLS on edges that a connection to a backend belongs to: caller, apex and backend."""
    for (caller, calls), figures in result.items():
        if calls.kind is not Kind.BACKEND:
            continue
        backend, source = called_of(calls.called), caller_of(caller)
        key = ServiceKey(Namespace(backend[0]), ServiceName(backend[1]))
        # A report can name anything.
        if view.services.get(key) is None:
            continue
        apexes = [*map(name_of, services_before(view, key))]
        ways = {(source, end) for end in (backend, *apexes)} | {(apex, backend) for apex in apexes}
        ways &= edges.keys()
        if not any(edges[between].by for between in ways):
            continue
        for between in ways:
            edges[between].tls += figures.tls
            edges[between].opened += max(0, figures.opened - figures.failed)


def _split(view: View, edges: defaultdict[Between, Calls], direct: _ByBackend, behind: _ByBackend) -> None:
    """Set the intended and the observed share of each backend of a TrafficSplit or route."""
    callers = defaultdict[Name, set[Name]](set)
    for caller, service in direct:
        callers[service].add(caller)
    for name, weights in configured_shares(view):
        had = {
            item: sum(_requests(caller, item, name, direct, behind) for caller in callers[name])
            for item in weights
        }
        for end in weights.keys() - {name}:
            calls = edges[name, end]
            calls.weights = weights[end]
            calls.share = had[end] / sum(had.values()) if sum(had.values()) else None


def _requests(caller: Name, backend: Name, apex: Name, direct: _ByBackend, behind: _ByBackend) -> int:
    """Return the requests of one caller to an apex that a backend received.

    Direct requests to the backend by its own name are subtracted.
    """
    every = behind.get((caller, backend))
    own = direct.get((caller, backend)) if backend != apex else None
    return 0 if every is None else max(0, _weight(every) - (0 if own is None else _weight(own)))
