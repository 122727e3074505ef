"""Rows of current traffic per service, edge, route, backend or proxy, computed from statistics.

Pure functions.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.identity import ProxyName
from meshwright.traffic.statistics import CalledPort, Calls, Direction, Figures, Kind, Protocol, RowKind
from meshwright.traffic.traffic import ByProxy, BySource, Caller

QUANTILES: Final = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Row:
    """Statistics of some calls; an attribute that is unknown, or not the same for all of them, is `None`.

    `direction` is the side that counted: the caller's proxy, or the called proxy.
    """

    source: Caller | None
    destination: CalledPort | None
    direction: Direction
    protocol: Protocol
    figures: Figures
    proxy: ProxyName | None = None
    route: str | None = None
    backend: CalledPort | None = None

    @property
    def place(self) -> tuple[object, ...]:
        """The sort key of the row."""
        return (
            _service_name(self.destination),
            self.protocol,
            _service_name(self.source),
            str(self.proxy or ""),
            self.route or "",
            _service_name(self.backend),
            self.direction,
        )


_Found = Mapping[BySource, Figures]


def rows(row_kind: RowKind, result: _Found) -> tuple[Row, ...]:
    """Return the rows of any kind except proxies, sorted by the called and the calling service."""
    match row_kind:
        case RowKind.SERVICES:
            made = _services(result)
        case RowKind.EDGES:
            made = _edges(result)
        case RowKind.ROUTES:
            made = _routes(result)
        case RowKind.BACKENDS:
            made = _backends(result)
        case RowKind.PROXIES:
            raise ValueError("the rows of proxies are made of what is kept by proxy")
    return tuple(sorted(made, key=lambda row: row.place))


def of_proxies(result: Mapping[ByProxy, Figures]) -> tuple[Row, ...]:
    """Return a row per proxy, protocol and direction, with all calls."""
    made = (
        Row(None, None, calls.direction, calls.protocol, figures, proxy=name)
        for (name, calls), figures in result.items()
    )
    return tuple(sorted(made, key=lambda row: row.place))


def _services(result: _Found) -> Iterator[Row]:
    """Yield a row per service and protocol, as counted by the service's own proxies, else by callers."""
    inbound: defaultdict[tuple[CalledPort, Protocol], Figures] = defaultdict(Figures)
    outbound: defaultdict[tuple[CalledPort, Protocol], Figures] = defaultdict(Figures)
    for (caller, calls), figures in result.items():
        if calls.kind is not Kind.EDGE:
            continue
        if calls.direction is Direction.INBOUND:
            inbound[CalledPort(caller.namespace, caller.service, 0), calls.protocol] += figures
        elif calls.called.namespace:
            outbound[CalledPort(calls.called.namespace, calls.called.service, 0), calls.protocol] += figures
    for direction, counted in ((Direction.INBOUND, inbound), (Direction.OUTBOUND, outbound)):
        for (service, protocol), figures in counted.items():
            if direction is Direction.INBOUND or (service, protocol) not in inbound:
                yield Row(None, service, direction, protocol, figures)


def _edges(result: _Found) -> Iterator[Row]:
    for caller, calls, figures in _of(Kind.EDGE, result):
        if calls.direction is Direction.OUTBOUND:
            yield Row(caller, calls.called, calls.direction, calls.protocol, figures)


def _routes(result: _Found) -> Iterator[Row]:
    for caller, calls, figures in _of(Kind.ROUTE, result):
        outbound = calls.direction is Direction.OUTBOUND
        there = calls.called if outbound else CalledPort(caller.namespace, caller.service, calls.called.port)
        source = caller if outbound else None
        yield Row(source, there, calls.direction, calls.protocol, figures, route=calls.route)


def _backends(result: _Found) -> Iterator[Row]:
    for caller, calls, figures in _of(Kind.BACKEND, result):
        yield Row(caller, None, calls.direction, calls.protocol, figures, backend=calls.called)


def _of(kind: Kind, result: _Found) -> Iterator[tuple[Caller, Calls, Figures]]:
    for (caller, calls), figures in result.items():
        if calls.kind is kind:
            yield caller, calls, figures


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Selection of rows that match every non-empty attribute; services are written `namespace/name`.

    `behind` are the backends to which TrafficSplits and routes lead calls to `destination`, because such
    calls are counted under the names of the backends.
    """

    namespace: str = ""
    source: str = ""
    destination: str = ""
    service: str = ""
    behind: frozenset[str] = frozenset()

    def select(self, made: Iterable[Row]) -> tuple[Row, ...]:
        """Return the rows selected by this filter."""
        return tuple(row for row in made if self._has(row))

    def _has(self, row: Row) -> bool:
        source = {_service_name(row.source or row.proxy)} - {""}
        destination = {_service_name(row.destination), _service_name(row.backend)} - {""}
        ends = source | destination
        return (
            (not self.namespace or any(end.startswith(self.namespace + "/") for end in ends))
            and (not self.source or self.source in source)
            and (not self.destination or bool(destination & {self.destination, *self.behind}))
            and (not self.service or self.service in ends)
        )


def _service_name(end: Caller | CalledPort | ProxyName | None) -> str:
    """Return `namespace/service`, for example `shop/cart`, or an empty text."""
    return "" if end is None else f"{end.namespace}/{end.service}"
