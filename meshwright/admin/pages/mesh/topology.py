"""`/debug/topology`: services and the traffic between them, allowed by policy and reported by proxies."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

from aiohttp import web

from meshwright.admin.html.looks.traffic import BADLY, WELL
from meshwright.admin.jsonable import Document, Json, jsonable
from meshwright.admin.pages.mesh.traffic import figures_document, window_seconds
from meshwright.admin.pages.paging import page
from meshwright.admin.pages.proxies.streams import by_proxy, sync
from meshwright.admin.proxy_names import NothingToShow
from meshwright.admin.readers import ProxyReading, StreamReading, TrafficReading
from meshwright.admin.topology.graph import Calls, EdgeCounts, Graph, Proxies, Sidecar, graph
from meshwright.admin.topology.names import OUTSIDE, Name
from meshwright.admin.topology.parts import around, by_namespace, within
from meshwright.admin.topology.shares import Weight
from meshwright.delivery.proxies.status import ProxyState
from meshwright.traffic.traffic import HOUR

MOST_SERVICES: Final = 300
"""Number of services above which namespaces are shown by default."""


class TopologyReading(ProxyReading, StreamReading, TrafficReading, Protocol):
    """Access to the server's proxies, streams and traffic counts, as the page Topology needs them."""


async def topology(reading: TopologyReading, query: Mapping[str, str], now: datetime) -> Document:
    """Return the requested nodes and edges.

    Raises web.HTTPBadRequest for an invalid query, NothingToShow for an unknown service or namespace.
    """
    view = reading.view()
    if view is None:
        raise web.HTTPNotFound(reason="the server has not read its sources yet: try again in a few seconds")
    traffic, at, shown = reading.traffic(), time.monotonic(), page(query)
    span = traffic.by_source(window_seconds(query, traffic), at)
    hour, sidecars = traffic.by_source(HOUR, at), tuple(_sidecars(reading))

    def made() -> Document:
        whole = graph(view, sidecars, EdgeCounts(span.summed(), hour.summed()))
        part, by = _requested_graph(whole, query)
        return {
            "at": jsonable(now),
            "window_seconds": round(span.seconds, 3),
            "by": by,
            "services": len(whole.nodes),
            "edges_in_all": len(part.edges),
            "nodes": _nodes(part, by),
            "edges": [
                _edge(*ends, calls, part.nodes[ends[0]].in_step, span.seconds)
                for ends, calls in shown.items(part.edges.items())
            ],
        }

    # In a thread, because the graph of a large mesh takes long.
    return await asyncio.to_thread(made)


def _sidecars(reading: TopologyReading) -> Iterable[Sidecar]:
    streams = by_proxy(reading.streams())
    for proxy in reading.proxies():
        states = sync(streams.get(str(proxy.name), ())).values()
        here = proxy.state is ProxyState.CONNECTED
        yield Sidecar(proxy.name, here, here and bool(states) and {*states} == {"synced"})


def _requested_graph(whole: Graph, query: Mapping[str, str]) -> tuple[Graph, str]:
    by = query.get("by", "")
    if by not in ("", "service", "namespace"):
        raise web.HTTPBadRequest(reason=f"by is {by[:40]!r}: must be service or namespace")
    if by == "namespace" and (query.get("service") or query.get("namespace")):
        text = (
            "by=namespace shows the whole mesh, so it cannot be combined with the parameter service "
            "or namespace"
        )
        raise web.HTTPBadRequest(reason=text)
    if service := query.get("service", ""):
        named = next((item for item in whole.nodes if identifier(item) == service), None)
        if named is None:
            raise NothingToShow(
                f"service {service[:200]!r} does not exist: must be namespace/service, for example "
                "'shop/cart'"
            )
        return around(whole, named), "service"
    if namespace := query.get("namespace", ""):
        if all(node[0] != namespace for node in whole.nodes):
            raise NothingToShow(f"namespace {namespace[:200]!r} has no services")
        return within(whole, namespace), "service"
    if by == "namespace" or (not by and len(whole.nodes) > MOST_SERVICES):
        return by_namespace(whole), "namespace"
    return whole, "service"


def identifier(name: Name) -> str:
    """Return the id of a node, for example `shop/cart`; a namespace or an outside host has its plain name."""
    return "/".join(filter(None, name))


def _nodes(part: Graph, by: str) -> list[Json]:
    """Return the nodes of a graph as JSON, in time proportional to the number of nodes plus edges."""
    successes = defaultdict[Name, list[float]](list)
    for (_, called), calls in part.edges.items():
        # Traffic without policy is the claim of one proxy, which must not change the verdict of another
        # service.
        counted = calls.figures if called[0] == OUTSIDE else calls.verified
        if counted is not None and counted.success is not None:
            successes[called].append(counted.success)
    return [_node(name, node, successes.get(name, []), by) for name, node in part.nodes.items()]


def _node(name: Name, proxies: Proxies, successes: Sequence[float], by: str) -> Document:
    kind = "outside" if name[0] == OUTSIDE else by
    return {
        "id": identifier(name),
        "namespace": name[0] or None,
        "name": name[1] or name[0],
        "kind": kind,
        "proxies": {
            "known": proxies.known,
            "connected": proxies.connected,
            "in_step": proxies.in_step,
        },
        "verdict": _verdict(proxies, successes),
    }


def _verdict(proxies: Proxies, successes: Sequence[float]) -> str:
    """Return the verdict of a node by the success of its inbound traffic and the state of its sidecars."""
    if successes and min(successes) < BADLY:
        return "failed"
    if (successes and min(successes) < WELL) or proxies.in_step < proxies.known:
        return "warning"
    return "ok" if proxies.known or successes else "info"


def _edge(source: Name, destination: Name, calls: Calls, in_step: int, seconds: float) -> Document:
    figures = calls.figures
    is_called = destination[0] != OUTSIDE and (figures is not None or not calls.weights)
    seen = None if figures is None else figures_document(figures, seconds)
    return {
        "source": identifier(source),
        "destination": identifier(destination),
        "allowed": bool(calls.by) if is_called else None,
        "by": list[Json](sorted(calls.by)),
        "configured": bool(calls.by) and in_step > 0,
        "seen": seen,
        "verified": seen is None or calls.verified == figures,
        "mtls": calls.mtls if figures is not None or calls.share else None,
        "weights": [_weight(weight) for weight in calls.weights],
        "share": None if calls.share is None else round(calls.share, 4),
    }


def _weight(weight: Weight) -> Document:
    return {
        "split": weight.split,
        "by": str(weight.by),
        "rule": weight.rule or None,
        "part": round(weight.part, 4),
    }
