"""Tests of the topology graph: calls by policy and by counted traffic."""

import pytest

from catalog.store.view import View
from meshwright.admin.topology.graph import (
    MOST_OUTSIDE,
    MOST_UNVERIFIED,
    Calls,
    EdgeCounts,
    Graph,
    Proxies,
    Sidecar,
    graph,
)
from meshwright.admin.topology.parts import around, by_namespace, within
from meshwright.admin.topology.shares import Weight
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import HTTP_ROUTE, TRAFFIC_SPLIT
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.traffic.statistics import CalledPort, Direction, Figures, Kind, Protocol
from meshwright.traffic.statistics import Calls as Counts
from meshwright.traffic.traffic import BySource, Caller
from tests.meshes import texts
from tests.meshes.views import view

MESH = (
    texts.account("buyer"),
    texts.account("store"),
    *(texts.service(item) for item in ("buyer", "store", "v1", "v2")),
    texts.workload("buyer", "10.0.0.1"),
    texts.workload("v1", "10.0.0.2", account="store"),
    texts.workload("v2", "10.0.0.3", account="store"),
    texts.route_group("routes", texts.match("all")),
    texts.target("buyers", "buyer", "store", texts.http("routes")),
    texts.split("split", "store", ("v1", 9), ("v2", 1)),
)
BUYER, STORE, V1, V2 = (("shop", item) for item in ("buyer", "store", "v1", "v2"))
BY = "TrafficTarget shop/buyers"
SPLIT = ObjectKey(TRAFFIC_SPLIT, Namespace("shop"), "split")
WEB = ObjectKey(HTTP_ROUTE, Namespace("shop"), "web")
A, REST = '{path: {type: PathPrefix, value: "/a"}}', '{path: {type: PathPrefix, value: "/"}}'
ROUTED = (
    *MESH[:-1],
    texts.gateway_route(
        "web", "store", texts.rule(A, ("v1", 1)), texts.rule(REST, ("v1", 1), ("v2", 2), ("none", 1))
    ),
)


def row(
    kind: Kind, name: str, requests: int, *, opened: int = 0, tls: int = 0, namespace: str = "shop"
) -> tuple[BySource, Figures]:
    """Return the buyer's count of requests to a service or a backend."""
    calls = Counts(kind, Direction.OUTBOUND, Protocol.HTTP, CalledPort(namespace, name, 80))
    figures = Figures(by_class=(0, requests, 0, 0, 0), opened=opened, tls=tls)
    return (Caller("shop", "buyer"), calls), figures


def made(*rows: tuple[BySource, Figures], mesh: View | None = None) -> Graph:
    """Return the graph of the counted calls, both recent and of the last hour."""
    sidecars = [Sidecar(ProxyName.parse(name), True, name.startswith("v")) for name in NAMES]
    return graph(mesh or view(*MESH), sidecars, EdgeCounts(dict(rows), dict(rows)))


NAMES = ("buyer.buyer.shop", "v1.v1.shop", "v2.v2.shop")


def test_allowed_calls_are_edges_before_any_traffic() -> None:
    """Calls that a TrafficTarget allows are edges, to the apex and its backends.

    The apex leads to backends by weight.
    """
    result = made()
    assert result.nodes == {
        BUYER: Proxies(1, 1, 0),
        STORE: Proxies(),
        V1: Proxies(1, 1, 1),
        V2: Proxies(1, 1, 1),
    }
    assert result.edges == {
        (BUYER, STORE): Calls({BY}),
        (BUYER, V1): Calls({BY}),
        (BUYER, V2): Calls({BY}),
        (STORE, V1): Calls(weights=(Weight(SPLIT, 0.9),)),
        (STORE, V2): Calls(weights=(Weight(SPLIT, 0.1),)),
    }


@pytest.mark.parametrize(
    "rules",
    [
        (),
        (texts.http("there-is-no-such-group"),),
        (texts.http("routes", "there-is-no-such-match"),),
        (texts.tcp("other-ports"),),
    ],
)
def test_target_without_effective_rules_allows_nothing(rules: tuple[str, ...]) -> None:
    """A target without rules, with missing references or with rules for other ports allows no call."""
    mesh = view(*MESH[:-2], texts.tcp_route("other-ports", 9), texts.target("t", "buyer", "store", *rules))
    assert found_between(made(mesh=mesh)) == set()
    assert found_between(made()) == {(BUYER, STORE), (BUYER, V1), (BUYER, V2)}


def found_between(result: Graph) -> set[tuple[tuple[str, str], tuple[str, str]]]:
    """Return the pairs of services between which policy allows calls."""
    return {ends for ends, calls in result.edges.items() if calls.by}


def test_counts_are_shown_on_edges_and_splits() -> None:
    """A split's shares leave out direct calls to backends. TLS is counted at the backends."""
    result = made(
        row(Kind.EDGE, "store", 100),
        row(Kind.EDGE, "v1", 20),
        row(Kind.BACKEND, "v1", 100, opened=2, tls=2),
        row(Kind.BACKEND, "v2", 20, opened=1),
    )
    assert (result.edges[BUYER, STORE].figures or Figures()).requests == 100
    assert (result.edges[STORE, V1].share, result.edges[STORE, V2].share) == (0.8, 0.2)
    seen = {ends: calls.mtls for ends, calls in result.edges.items()}
    assert seen == {
        (BUYER, STORE): True,
        (BUYER, V1): True,
        (BUYER, V2): False,
        (STORE, V1): True,
        (STORE, V2): False,
    }


def test_calls_without_permission_and_to_hosts_outside_are_edges_once_seen() -> None:
    """Counted calls without permission, and calls to outside hosts, are edges without a policy object."""
    result = made(row(Kind.EDGE, "buyer", 3), row(Kind.EDGE, "books.example.org", 4, namespace=""))
    outside = ("", "books.example.org")
    assert result.nodes[outside] == Proxies()
    assert (result.edges[BUYER, outside].by, result.edges[BUYER, BUYER].by) == (set(), set())


def test_permissive_mode_shows_only_counted_calls() -> None:
    """In permissive mode every call is allowed, so only counted calls are edges."""
    result = made(row(Kind.EDGE, "v2", 3), mesh=view(*MESH, texts.PERMISSIVE))
    called = {ends: calls.by for ends, calls in result.edges.items() if not calls.weights}
    assert called == {(BUYER, V2): {"MeshConfig (permissive)"}}


def test_graph_can_be_limited_to_a_service_or_a_namespace() -> None:
    """A part of the graph is a service with its neighbours, a namespace, or the sums by namespace."""
    result = made(row(Kind.EDGE, "store", 5), row(Kind.EDGE, "books.example.org", 4, namespace=""))
    outside = ("", "books.example.org")
    assert [*around(result, V2).edges] == [
        (BUYER, STORE),
        (BUYER, V2),
        (STORE, V1),
        (STORE, V2),
    ]
    assert [*around(result, outside).nodes] == [outside, BUYER]
    assert within(result, "shop") == result
    assert within(result, "").edges.keys() == {(BUYER, outside)}
    every = by_namespace(result)
    assert every.nodes == {("", "outside"): Proxies(), ("shop", ""): Proxies(3, 3, 2)}
    assert [(ends, (calls.figures or Figures()).requests) for ends, calls in every.edges.items()] == [
        ((("shop", ""), ("", "outside")), 4)
    ]


def test_graph_takes_linear_work() -> None:
    """The number of values derived from the view is linear in the mesh, not in services squared."""

    def asked(count: int) -> int:
        names = [f"s{number}" for number in range(count)]
        documents = [
            *(texts.service(name) for name in names),
            *(texts.workload(name, f"10.0.{n // 250}.{n % 250 + 1}") for n, name in enumerate(names)),
            *(texts.target(name, "s0", name, texts.http("routes")) for name in names),
            texts.route_group("routes", texts.match("all")),
        ]
        mesh = view(*documents)
        before = mesh.graph.computed
        result = graph(mesh, (), EdgeCounts({}, {}))
        assert len(result.edges) == count
        return mesh.graph.computed - before

    assert asked(160) <= 4 * asked(40) + 10


def forged(count: int, namespace: str = "made-up") -> list[tuple[BySource, Figures]]:
    """Return the counts that the buyer's proxy reports for services that do not exist."""
    return [row(Kind.EDGE, f"s{number}", number + 1, namespace=namespace) for number in range(count)]


@pytest.mark.parametrize(("namespace", "kept"), [("made-up", MOST_UNVERIFIED), ("", MOST_OUTSIDE)])
def test_edges_to_unknown_names_are_bounded(namespace: str, kept: int) -> None:
    """Unknown names have a bounded number of edges, those with most requests first; the rest is summed up."""
    result = made(row(Kind.EDGE, "store", 5), *forged(5000, namespace))
    claimed = {ends: calls for ends, calls in result.edges.items() if calls.figures and not calls.verified}
    assert len(claimed) == kept + 1
    others = result.edges[BUYER, ("", "others")].figures or Figures()
    assert others.requests == sum(range(1, 5001 - kept))
    assert len(result.nodes) == len(made().nodes) + kept + 1
    assert result.edges[BUYER, STORE].verified == result.edges[BUYER, STORE].figures


def test_names_from_reports_are_not_kept_in_the_view() -> None:
    """The view derives no values for names that only a report contains. Such values would stay in memory."""
    mesh = view(*MESH, texts.PERMISSIVE)
    made(mesh=mesh)
    before = mesh.graph.size()
    made(*(row(kind, f"s{n}", 1, namespace=f"n{n}") for n in range(300) for kind in Kind), mesh=mesh)
    assert mesh.graph.size() == before


def test_permissive_mode_allows_no_call_to_an_unknown_service() -> None:
    """In permissive mode a call to an unknown service is not verified, because only the proxy claims it."""
    result = made(row(Kind.EDGE, "none", 3), mesh=view(*MESH, texts.PERMISSIVE))
    assert result.edges[BUYER, ("shop", "none")].by == set()
    assert result.edges[BUYER, ("shop", "none")].verified is None


def test_report_of_a_caller_without_permission_does_not_count_for_a_split() -> None:
    """The share and the mTLS state of a backend come only from callers that policy allows."""
    rows = (row(Kind.EDGE, "store", 10), row(Kind.BACKEND, "v1", 10, opened=1))
    closed = view(*MESH[:-2], MESH[-1])
    honest, refused = made(*rows), made(*rows, mesh=closed)
    assert (honest.edges[STORE, V1].share, honest.edges[STORE, V1].mtls) == (1.0, False)
    assert (refused.edges[STORE, V1].share, refused.edges[STORE, V1].mtls) == (None, None)


def test_sums_of_namespaces_separate_calls_without_permission() -> None:
    """The sums of a namespace count allowed calls apart from all calls."""
    mesh = view(
        *MESH,
        texts.service("pay", namespace="bank"),
    )
    result = by_namespace(made(row(Kind.EDGE, "pay", 4, namespace="bank"), mesh=mesh))
    calls = result.edges[("shop", ""), ("bank", "")]
    assert ((calls.figures or Figures()).requests, calls.verified) == (4, None)


def test_shares_of_route_rules_are_edges_behind_the_parent() -> None:
    """The parent of a route may be called if a backend may, and each rule has its own shares.

    The share of a missing backend belongs to no edge.
    """
    result = made(mesh=view(*ROUTED))
    assert result.edges == {
        (BUYER, STORE): Calls({BY}),
        (BUYER, V1): Calls({BY}),
        (BUYER, V2): Calls({BY}),
        (STORE, V1): Calls(weights=(Weight(WEB, 1.0, "spec.rules[0]"), Weight(WEB, 0.25, "spec.rules[1]"))),
        (STORE, V2): Calls(weights=(Weight(WEB, 0.5, "spec.rules[1]"),)),
    }


def test_route_in_place_of_a_split_is_shown_alone() -> None:
    """A TrafficSplit without effect beside a route has no edges."""
    result = made(mesh=view(*MESH, ROUTED[-1]))
    assert {weight.by for calls in result.edges.values() for weight in calls.weights} == {WEB}


def test_counts_are_shown_on_edges_of_a_route() -> None:
    """Access to the backends verifies requests to the parent, and shares leave out direct calls."""
    result = made(
        row(Kind.EDGE, "store", 100),
        row(Kind.EDGE, "v1", 20),
        row(Kind.BACKEND, "v1", 80, opened=2, tls=2),
        row(Kind.BACKEND, "v2", 40, opened=1),
        mesh=view(*ROUTED),
    )
    assert result.edges[BUYER, STORE].verified == result.edges[BUYER, STORE].figures
    assert (result.edges[STORE, V1].share, result.edges[STORE, V2].share) == (0.6, 0.4)
    assert (result.edges[BUYER, STORE].mtls, result.edges[STORE, V1].mtls) == (True, True)


def test_consumer_route_allows_calls_of_its_own_namespace_only() -> None:
    """A route of another namespace leads no calls of the buyer, so that the buyer may not call the parent."""
    consumer = texts.gateway_route("web", "store", texts.rule(REST, ("v1", 1)), namespace="other")
    assert (BUYER, STORE) not in found_between(made(mesh=view(*MESH[:-1], consumer)))
    assert (BUYER, STORE) in found_between(made(mesh=view(*ROUTED))), "negative control"


def test_parent_with_backends_in_a_permissive_namespace_may_be_called() -> None:
    """The namespace of the backend decides, not that of the called Service."""
    there = texts.manifest(
        "Namespace", "open", namespace="", metadata="annotations: {meshwright.dev/permissive: 'true'}"
    )
    to = texts.rule(REST, ("v1", 1)).replace("name: v1", "name: v1, namespace: open")
    mesh = view(
        *MESH[:-1], there, texts.service("v1", namespace="open"), texts.gateway_route("web", "store", to)
    )
    result = made(row(Kind.EDGE, "store", 5), mesh=mesh)
    assert result.edges[BUYER, STORE].by == {"Namespace open (permissive)"}
    assert (STORE, ("open", "v1")) in result.edges
    assert by_namespace(result).edges == {}, "shares are no calls between the namespaces"
