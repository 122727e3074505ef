"""Layout of a graph in layers, so that most edges lead from left to right (Sugiyama's method).

Edges that close a cycle are reversed first. Each node is in the layer after the last of its callers. The
order within a layer follows the position of the neighbours. An edge across several layers has a place in each
of them, so that its line passes between nodes. The layout is deterministic.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

Edge = tuple[str, str]
Edges = Collection[Edge]
SWEEPS: Final = 16
"""Maximum number of passes over all layers, forwards and backwards in turn."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Layers from left to right, with their places from top to bottom.

    A place is a node or a passing edge. `ways` has the places of each edge from its start to its end.
    """

    layers: tuple[tuple[str, ...], ...]
    ways: Mapping[Edge, tuple[str, ...]]


def layout(nodes: Sequence[str], edges: Edges) -> Layout:
    """Return the drawing layout of a graph; an edge from a node to itself is ignored."""
    turned = _turned(nodes, edges)
    forward = {edge: edge[::-1] if edge in turned else edge for edge in sorted(edges) if edge[0] != edge[1]}
    rank = _ranks(nodes, {*forward.values()})
    rows: list[list[str]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for node in sorted(nodes):
        rows[rank[node]].append(node)
    ways = dict[Edge, tuple[str, ...]]()
    for edge, (first, last) in forward.items():
        passed = [f"{first} to {last} {layer}" for layer in range(rank[first] + 1, rank[last])]
        for layer, place in enumerate(passed, rank[first] + 1):
            if place not in rows[layer]:
                rows[layer].append(place)
        way = (first, *passed, last)
        ways[edge] = way[::-1] if edge in turned else way
    ordered = _ordered(rows, [pair for way in ways.values() for pair in pairwise(way)])
    return Layout(tuple(map(tuple, ordered)), ways)


def crossings(rows: Sequence[Sequence[str]], steps: Iterable[Edge]) -> int:
    """Return the number of edge crossings between all neighbouring layers of the drawing."""
    at = {place: (layer, number) for layer, row in enumerate(rows) for number, place in enumerate(row)}
    between = defaultdict[int, list[tuple[int, int]]](list)
    for one, other in steps:
        (layer, left), (_, right) = sorted((at[one], at[other]))
        between[layer].append((left, right))
    return sum(_inversions([right for _, right in sorted(pairs)]) for pairs in between.values())


def _inversions(numbers: Sequence[int]) -> int:
    """Return the number of pairs in the wrong order, in O(n log n) by merge sort."""
    if len(numbers) < 2:
        return 0
    half = len(numbers) // 2
    left, right = numbers[:half], numbers[half:]
    count, ahead, behind = _inversions(left) + _inversions(right), sorted(left), sorted(right)
    passed = 0
    for number in ahead:
        while passed < len(behind) and behind[passed] < number:
            passed += 1
        count += passed
    return count


def _turned(nodes: Sequence[str], edges: Edges) -> frozenset[Edge]:
    """Return the edges to be drawn backwards, because they close a cycle."""
    after = defaultdict[str, list[str]](list)
    for source, destination in sorted(edges):
        if source != destination:
            after[source].append(destination)
    called = {destination for source, destination in edges if source != destination}
    done, turned = set[str](), set[Edge]()
    # Nodes without callers come first, because the edges from them lead forward.
    for start in sorted(nodes, key=lambda node: (node in called, node)):
        _walk(start, after, done, turned)
    return frozenset(turned)


def _walk(start: str, after: Mapping[str, Iterable[str]], done: set[str], turned: set[Edge]) -> None:
    """Walk depth-first from a node, and collect the edges that lead back to the current path."""
    if start in done:
        return
    done.add(start)
    # An explicit stack: a long chain of services would exceed Python's recursion limit.
    way = {start: iter(after.get(start, ()))}
    while way:
        node, further = next(reversed(way.items()))
        following = next(further, None)
        if following is None:
            del way[node]
        elif following in way:
            turned.add((node, following))
        elif following not in done:
            done.add(following)
            way[following] = iter(after.get(following, ()))


def _ranks(nodes: Sequence[str], forward: Edges) -> dict[str, int]:
    """Return the layer of each node in the drawing: after the last of the node's callers."""
    waiting, after = dict.fromkeys(nodes, 0), defaultdict[str, list[str]](list)
    for source, destination in forward:
        waiting[destination] += 1
        after[source].append(destination)
    rank, ready = dict.fromkeys(nodes, 0), [node for node in nodes if not waiting[node]]
    while ready:
        node = ready.pop()
        for item in after[node]:
            rank[item] = max(rank[item], rank[node] + 1)
            waiting[item] -= 1
            if not waiting[item]:
                ready.append(item)
    _tighten(rank, forward)
    return rank


def _tighten(rank: dict[str, int], forward: Edges) -> None:
    """Move nodes next to the nodes that they call, if more edges get shorter than longer."""
    before, after = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for source, destination in forward:
        before[destination].append(source)
        after[source].append(destination)
    for node in sorted(after, key=lambda node: (-rank[node], node)):
        if len(after[node]) > len(before[node]):
            rank[node] = min(rank[item] for item in after[node]) - 1


def _ordered(rows: list[list[str]], steps: Sequence[Edge]) -> list[list[str]]:
    """Return the best order found by sorting layers by the mean position of neighbours.

    The sweeps start at both ends in turn.
    """
    near = defaultdict[str, list[str]](list)
    for one, other in steps:
        near[one].append(other)
        near[other].append(one)
    best, now, fewest = [list(row) for row in rows], rows, crossings(rows, steps)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        at = {place: number / len(row) for row in now for number, place in enumerate(row)}
        for row in now if sweep % 2 == 0 else now[::-1]:
            # The name decides between equal positions, so that the layout is deterministic.
            row.sort(key=lambda place: (_middle([at[item] for item in near[place]], at[place]), place))
            at |= {place: number / len(row) for number, place in enumerate(row)}
        _swap(now, near)
        if (count := crossings(now, steps)) < fewest:
            best, fewest = [list(row) for row in now], count
    return best


def _swap(rows: list[list[str]], near: Mapping[str, Sequence[str]]) -> None:
    """Swap two adjacent nodes of a layer if there are fewer crossings of edges afterwards."""
    for row in rows:
        at = {place: number for item in rows for number, place in enumerate(item)}
        layer = {place: number for number, item in enumerate(rows) for place in item}
        for number in range(len(row) - 1):
            upper, lower = row[number], row[number + 1]
            above, below = near[upper], near[lower]
            pairs = [(at[a], at[b]) for a in above for b in below if layer[a] == layer[b]]
            if sum(a > b for a, b in pairs) > sum(a < b for a, b in pairs):
                row[number], row[number + 1] = lower, upper


def _middle(places: Sequence[float], own: float) -> float:
    return sum(places) / len(places) if places else own
