"""Traffic statistics of services, proxies, edges, routes and backends."""

import asyncio
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Protocol

from aiohttp import web

from catalog.relations.references import resolved_rules
from catalog.relations.route_reach import attached_routes, places_of
from catalog.store.smi import splits_by_apex
from catalog.store.view import View
from meshwright.admin.jsonable import Document, Json, jsonable
from meshwright.admin.pages.paging import page
from meshwright.admin.readers import ProxyReading, TrafficReading
from meshwright.admin.topology.allowed_edges import verified
from meshwright.delivery.proxies.status import ProxyState
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.service import ServiceKey
from meshwright.traffic.cells import Span
from meshwright.traffic.current import QUANTILES, Row, RowFilter, of_proxies, rows
from meshwright.traffic.statistics import CalledPort, Figures, RowKind
from meshwright.traffic.traffic import BySource, Caller, TrafficStatistics

LEAST_SECONDS: Final = 10
MOST_SECONDS: Final = 3600
DEFAULT_SECONDS: Final = 60
"""Default window in seconds, or the report interval of the proxies if that is longer."""


class MeshTrafficReading(ProxyReading, TrafficReading, Protocol):
    """Access to the server's state, as the page Traffic needs it."""


async def stat(
    reading: MeshTrafficReading, row_kind: RowKind, query: Mapping[str, str], now: datetime
) -> Document:
    """Return the requested rows of traffic statistics. Raises web.HTTPBadRequest for an invalid query."""
    traffic, at = reading.traffic(), time.monotonic()
    window, shown = window_seconds(query, traffic), page(query)
    wanted = _wanted(
        query,
        backends_of(reading.view(), query.get("to", "")) if row_kind is RowKind.BACKENDS else frozenset(),
    )
    # In a thread, because a large mesh has many entries to add up.
    if row_kind is RowKind.PROXIES:
        by_proxy = traffic.by_proxy(window, at)
        result, seconds = of_proxies(await asyncio.to_thread(by_proxy.summed)), by_proxy.seconds
    else:
        by_source = traffic.by_source(window, at)
        result, seconds = (
            await asyncio.to_thread(_rows, row_kind, by_source, reading.view()),
            by_source.seconds,
        )
    result = wanted.select(result)
    connected = sum(proxy.state is ProxyState.CONNECTED for proxy in reading.proxies())
    return {
        "at": jsonable(now),
        "window_seconds": round(seconds, 3),
        "reporting": {
            "proxies": traffic.reporting(at),
            "connected": connected,
            "every_seconds": traffic.every_seconds,
        },
        "rows_in_all": len(result),
        "rows": [row_document(row, seconds) for row in shown.items(result)],
    }


def _rows(row_kind: RowKind, span: Span[BySource], view: View | None) -> tuple[Row, ...]:
    """Return all rows; statistics of services include allowed requests only.

    A service's own proxies are the preferred reporters. Without their reports, those of the callers are used.
    A caller can report any request, so a caller that may not call the service must not change its statistics.
    """
    summed = span.summed()
    if row_kind is RowKind.SERVICES and view is not None:
        summed = verified(view, summed)
    return rows(row_kind, summed)


def row_document(row: Row, seconds: float) -> Document:
    """Return a row of traffic statistics as JSON, with rates over `seconds`."""
    return {
        "source": _party(row.source),
        "destination": _called(row.destination),
        "proxy": None if row.proxy is None else str(row.proxy),
        "route": row.route,
        "backend": _called(row.backend),
        "direction": row.direction.value,
        "protocol": row.protocol.value,
        **figures_document(row.figures, seconds),
    }


def figures_document(figures: Figures, seconds: float) -> Document:
    """Return counts of calls over `seconds` as JSON, with rates and response times in milliseconds."""
    times = {f"p{round(part * 100)}_ms": _rounded(figures.quantile_ms(part)) for part in QUANTILES}
    return {
        "requests": figures.requests,
        "per_second": round(figures.requests / seconds, 3),
        "success": _rounded(figures.success, 6),
        "failures": figures.failures,
        "by_class": {f"{number}xx": count for number, count in enumerate(figures.by_class, 1)},
        "grpc_failed": figures.grpc_failed,
        **times,
        "retries": figures.retries,
        "connections": figures.opened,
        "connections_failed": figures.failed,
        "tls_handshakes": figures.tls,
        "sent_bytes": figures.sent_bytes,
        "received_bytes": figures.received_bytes,
    }


def _party(end: Caller | ProxyName | None) -> Json:
    return None if end is None else {"namespace": str(end.namespace), "service": str(end.service)}


def _called(end: CalledPort | None) -> Json:
    if end is None:
        return None
    return {"namespace": end.namespace, "service": end.service, "port": end.port or end.port_name or None}


def _rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)


def window_seconds(query: Mapping[str, str], traffic: TrafficStatistics) -> float:
    """Return the requested or default window in seconds. Raises web.HTTPBadRequest for an invalid one."""
    text = query.get("window", str(max(DEFAULT_SECONDS, traffic.every_seconds)))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:  # False for nan as well
        words = f"window is {text[:40]!r}: must be {LEAST_SECONDS} to {MOST_SECONDS} seconds"
        raise web.HTTPBadRequest(reason=words)
    return seconds


def backends_of(view: View | None, called: str) -> frozenset[str]:
    """Return the backends of a service's TrafficSplits and routes; empty for a service without any."""
    namespace, slash, name = called.partition("/")
    if view is None or not slash:
        return frozenset()
    key = ServiceKey(Namespace(namespace), ServiceName(name))
    splits = splits_by_apex(view).lookup(key)
    rules = (rule for route in attached_routes(view, key) for rule in resolved_rules(view, route))
    places = (place for rule in rules for place in places_of(rule))
    return frozenset(
        (
            *(f"{namespace}/{backend.service}" for split in splits for backend in split.backends),
            *(str(place.service) for place in places),
        )
    )


def _wanted(query: Mapping[str, str], behind: frozenset[str]) -> RowFilter:
    for name in ("from", "to", "service"):
        if name in query and query[name].count("/") != 1:
            words = f"{name} is {query[name][:80]!r}: must be namespace/service"
            raise web.HTTPBadRequest(reason=words)
    return RowFilter(
        query.get("namespace", ""),
        query.get("from", ""),
        query.get("to", ""),
        query.get("service", ""),
        behind,
    )
