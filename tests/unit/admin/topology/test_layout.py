"""Tests of the layout of the topology: each node once, and edges from layer to layer."""

import random
from itertools import chain, pairwise

from hypothesis import given
from hypothesis import strategies as st

from meshwright.admin.topology.layout import crossings, layout

NODES = st.lists(st.sampled_from("abcdefghijkl"), min_size=1, unique=True)
GRAPHS = NODES.flatmap(
    lambda nodes: st.tuples(
        st.just(nodes), st.sets(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=24)
    )
)
Graph = tuple[list[str], set[tuple[str, str]]]


@given(GRAPHS)
def test_layout_places_every_node_and_edge(graph: Graph) -> None:
    """Every node has one place. Every edge is a path from its start to its end with a place in each layer."""
    nodes, edges = graph
    result = layout(nodes, edges)
    places = list(chain.from_iterable(result.layers))
    assert sorted(item for item in places if item in nodes) == sorted(nodes)
    assert len(set(places)) == len(places)
    layer = {place: number for number, row in enumerate(result.layers) for place in row}
    assert result.ways.keys() == {edge for edge in edges if edge[0] != edge[1]}
    for (source, destination), way in result.ways.items():
        assert (way[0], way[-1]) == (source, destination)
        steps = {layer[after] - layer[before] for before, after in pairwise(way)}
        assert steps in ({1}, {-1})


@given(GRAPHS, st.randoms())
def test_layout_does_not_depend_on_the_order_of_nodes(graph: Graph, dice: random.Random) -> None:
    """The same graph has the same layout for any order of its nodes."""
    nodes, edges = graph
    shuffled = list(nodes)
    dice.shuffle(shuffled)
    assert layout(shuffled, {*edges}) == layout(nodes, edges)


def test_calls_go_from_left_to_right_and_cycles_are_cut() -> None:
    """Nodes without callers are in the first layer, and one edge of a cycle leads back."""
    result = layout(
        ["db", "front", "shop"], {("front", "shop"), ("shop", "db"), ("db", "shop"), ("db", "db")}
    )
    assert result.layers == (("front",), ("shop",), ("db",))
    assert result.ways["db", "shop"] == ("db", "shop")
    passing = layout(["a", "b", "c"], {("a", "b"), ("b", "c"), ("a", "c")})
    assert [len(row) for row in passing.layers] == [1, 2, 1]


def test_layout_reduces_crossings() -> None:
    """Three crossings in the order of names are reduced to none."""
    edges = {("a", "z"), ("b", "y"), ("c", "x")}
    result = layout([*"abcxyz"], edges)
    assert crossings([sorted(row) for row in result.layers], edges) == 3
    assert crossings(result.layers, edges) == 0


def test_caller_is_placed_next_to_the_service_that_it_calls() -> None:
    """A caller of a deep node is in the layer before it, so that its edge does not pass all the others."""
    chain_ = {("a", "b"), ("b", "c"), ("c", "d")}
    result = layout([*"abcdx"], chain_ | {("x", "d")})
    assert [sorted(row) for row in result.layers] == [["a"], ["b"], ["c", "x"], ["d"]]
