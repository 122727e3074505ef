"""Parts of a graph: a service with its neighbours, a namespace, or the namespaces as nodes."""

from collections import defaultdict
from collections.abc import Iterable

from meshwright.admin.topology.graph import Calls, Graph, Proxies
from meshwright.admin.topology.names import OUTSIDE, Between, Name


def around(whole: Graph, service: Name) -> Graph:
    """Return the part of the graph around a service: callers, called services, and backends behind them."""
    near = {service, *(end for between in whole.edges if service in between for end in between)}
    behind = {between for between, calls in whole.edges.items() if calls.weights and near & {*between}}
    shown = near.union(*behind) if behind else near
    kept = {between for between in whole.edges if service in between} | behind
    # A caller of the apex also calls the backends.
    apexes = {apex for apex, backend in behind if backend == service}
    kept |= {between for between in whole.edges if between[1] in apexes}
    shown = shown.union(*kept) if kept else shown
    return _only(whole, shown, kept)


def within(whole: Graph, namespace: str) -> Graph:
    """Return the part of the graph with the services of a namespace and their neighbours."""
    kept = {between for between in whole.edges if namespace in (between[0][0], between[1][0])}
    own = {node for node in whole.nodes if node[0] == namespace}
    return _only(whole, own.union(*kept) if kept else own, kept)


def by_namespace(whole: Graph) -> Graph:
    """Return the graph of namespaces instead of services; all outside hosts are one node."""
    nodes = defaultdict[Name, Proxies](Proxies)
    edges = defaultdict[Between, Calls](Calls)
    for node, proxies in whole.nodes.items():
        nodes[_namespace(node)].add(proxies)
    for (source, destination), calls in whole.edges.items():
        between = _namespace(source), _namespace(destination)
        # Traffic within a namespace has no edge here, and the shares of backends are no calls of their own.
        if between[0] != between[1] and (calls.by or calls.figures is not None or not calls.weights):
            _merge(edges[between], calls)
    return Graph(dict(sorted(nodes.items())), dict(sorted(edges.items())))


def _namespace(node: Name) -> Name:
    return (node[0], "") if node[0] != OUTSIDE else (OUTSIDE, "outside")


def _merge(into: Calls, calls: Calls) -> None:
    into.by |= calls.by
    into.tls += calls.tls
    into.opened += calls.opened
    if calls.figures is not None:
        into.count(calls.figures)
    if calls.verified is not None:
        into.verified = calls.verified if into.verified is None else into.verified + calls.verified


def _only(whole: Graph, nodes: Iterable[Name], edges: Iterable[Between]) -> Graph:
    shown, kept = set(nodes), set(edges)
    return Graph(
        {node: proxies for node, proxies in whole.nodes.items() if node in shown},
        {between: edge for between, edge in whole.edges.items() if between in kept},
    )
