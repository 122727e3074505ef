"""Tests of Envoy's statistics per edge, in few series, in Prometheus' format."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from meshwright.agent.statistics.edge_totals import MOST_ROUTES, BoundedSeries, WorkloadLabels
from meshwright.agent.statistics.edges import Edges, histogram
from meshwright.agent.statistics.exposition import Family, Kind, Sample, written
from meshwright.agent.statistics.page import account_of
from meshwright.agent.statistics.statistics import Bin, Statistics, read
from meshwright.traffic.statistics import BOUNDS_MS

ALICE = WorkloadLabels("default", "alice", "alice-account")
BUDGET = 2000
"""Series of a proxy, whatever it calls."""


def _answer(
    numbers: Mapping[str, int], times: Mapping[str, list[tuple[float, float, int]]]
) -> dict[str, Any]:
    """Return an answer of Envoy's admin interface in the form of version 1.40."""
    details = [
        {
            "name": name,
            "totals": [{"lower_bound": low, "width": width, "count": count} for low, width, count in bins],
            "intervals": [],
            "percentiles": [],
        }
        for name, bins in times.items()
    ]
    stats: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in numbers.items()]
    return {"stats": [*stats, {"histograms": {"supported_percentiles": [0], "details": details}}]}


def test_call_through_a_split_has_an_edge_and_backends() -> None:
    """The called service and the answering backends have series.

    Statistics that Envoy counts twice are exported once.
    """
    statistics = read(
        _answer(
            {
                "http.rds-outbound.default/shop|80.downstream_rq_2xx": 9,
                "http.rds-outbound.default/shop|80.downstream_rq_5xx": 1,
                "http.rds-outbound.default/shop|80.downstream_cx_total": 3,
                "http.rds-outbound.default/shop|80.downstream_cx_rx_bytes_total": 700,
                "http.rds-outbound.default/shop|80.downstream_cx_tx_bytes_total": 9000,
                "http.rds-inbound.8080.downstream_rq_4xx": 2,
                "http.admin.downstream_rq_2xx": 77,
                "tcp.outbound.default/db|5432.downstream_cx_total": 4,
                "cluster.default/shop-v1|8080.upstream_rq_2xx": 9,
                "cluster.default/shop-v1|8080.upstream_cx_active": 2,
                "cluster.default/shop-v1|8080.external.upstream_rq_2xx": 55,
                "cluster.default/shop-v1|8080.retry.upstream_rq_5xx": 55,
                "cluster.default/alice|8080|local.upstream_rq_2xx": 55,
                "cluster.books.example.org_80.upstream_rq_5xx": 1,
                "cluster.books.example.org_80.upstream_cx_connect_fail": 1,
            },
            {
                "http.rds-outbound.default/shop|80.downstream_rq_time": [
                    (0, 0, 3),
                    (4.9, 0.1, 2),
                    (5, 0.1, 1),
                ],
                "cluster.default/shop-v1|8080.upstream_rq_time": [(2, 0.1, 4)],
            },
        )
    )
    lines = written(Edges().families(statistics, ALICE)).splitlines()
    source = 'source_namespace="default",source_service="alice",source_service_account="alice-account"'
    shop = (
        f'direction="outbound",{source},destination_namespace="default",destination_service="shop",'
        'destination_port="80",protocol="http"'
    )
    v1 = f'{source},backend_namespace="default",backend_service="shop-v1",backend_port="8080"'
    books = f'{source},backend_service="books.example.org",backend_port="80"'
    here = (
        'direction="inbound",destination_namespace="default",destination_service="alice",'
        'destination_service_account="alice-account",destination_port="8080",protocol="http"'
    )
    db = (
        f'direction="outbound",{source},destination_namespace="default",destination_service="db",'
        'destination_port="5432",protocol="tcp"'
    )
    seconds = "meshwright_edge_request_duration_seconds"
    bounds = ("0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "10", "+Inf")
    assert [line for line in lines if not line.startswith("#")] == [
        f'meshwright_edge_requests_total{{{here},status_class="4xx"}} 2',
        f'meshwright_edge_requests_total{{{shop},status_class="2xx"}} 9',
        f'meshwright_edge_requests_total{{{shop},status_class="5xx"}} 1',
        f'{seconds}_bucket{{{shop},le="0.005"}} 5',
        *(f'{seconds}_bucket{{{shop},le="{bound}"}} 6' for bound in bounds[1:]),
        f"{seconds}_sum{{{shop}}} 0.01495",
        f"{seconds}_count{{{shop}}} 6",
        f"meshwright_edge_connections_total{{{shop}}} 3",
        f"meshwright_edge_connections_total{{{db}}} 4",
        f"meshwright_edge_sent_bytes_total{{{shop}}} 700",
        f"meshwright_edge_received_bytes_total{{{shop}}} 9000",
        f'meshwright_backend_requests_total{{{books},status_class="5xx"}} 1',
        f'meshwright_backend_requests_total{{{v1},status_class="2xx"}} 9',
        f"meshwright_backend_request_duration_seconds_sum{{{v1}}} 0.0082",
        f"meshwright_backend_request_duration_seconds_count{{{v1}}} 4",
        f"meshwright_backend_connections_failed_total{{{books}}} 1",
        f"meshwright_backend_connections_open{{{v1}}} 2",
    ]


def test_failed_grpc_calls_are_counted_for_backends_and_edges() -> None:
    """Envoy counts failed gRPC calls by cluster.

    The edge is found by the port's number, by the only port, or by the local workload.
    """
    numbers = {
        **{
            f"http.rds-outbound.default/{at}.downstream_rq_2xx": 9 for at in ("shop|80", "bank|80", "bank|90")
        },
        "http.rds-inbound.8080.downstream_rq_2xx": 9,
        "cluster.default/shop|grpc.grpc.failure": 1,
        "cluster.default/bank|90.grpc.failure": 2,
        "cluster.default/shop-v1|50051.grpc.failure": 3,
        "cluster.default/alice|8080|local.grpc.failure": 4,
        "cluster.default/alice|8080|local.grpc.success": 5,
    }
    text = written(Edges().families(read(_answer(numbers, {})), ALICE))
    edges = {
        (labels["direction"], labels["destination_service"], labels["destination_port"]): value
        for labels, value in _values(text, "meshwright_edge_grpc_failed")
    }
    assert edges == {
        ("outbound", "shop", "80"): 1,
        ("outbound", "bank", "90"): 2,
        ("inbound", "alice", "8080"): 4,
    }
    backends = {
        (labels["backend_service"], labels["backend_port"]): value
        for labels, value in _values(text, "meshwright_backend_grpc_failed")
    }
    assert backends == {("shop", "grpc"): 1, ("bank", "90"): 2, ("shop-v1", "50051"): 3}


def test_routes_of_a_service_are_counted_separately() -> None:
    """A route is counted by service, port and its name in the policy.

    Other statistics of a virtual host are skipped.
    """
    numbers = {
        "vhost.default/shop.route.80|default/canary/api.v1.upstream_rq_2xx": 3,
        "vhost.default/shop.route.80|default/canary/api.v1.upstream_rq_200": 3,
        "vhost.default/shop.route.80|rest.upstream_rq_5xx": 1,
        "vhost.default/shop.vcluster.other.upstream_rq_2xx": 9,
        "vhost.books.example.org.route.443|default/slow.upstream_rq_2xx": 5,
    }
    text = written(Edges().families(read(_answer(numbers, {})), ALICE))
    result = {
        (labels.get("destination_namespace"), labels["destination_service"], labels["destination_port"])
        for labels, _ in _values(text, "meshwright_route_requests")
    }
    assert result == {("default", "shop", "80"), (None, "books.example.org", "443")}
    routes = {
        (labels["route"], labels["status_class"]): value
        for labels, value in _values(text, "meshwright_route_requests")
    }
    assert routes == {("default/canary/api.v1", "2xx"): 3, ("rest", "5xx"): 1, ("default/slow", "2xx"): 5}


def test_inbound_calls_are_counted_by_the_admitting_match() -> None:
    """Inbound calls are counted at the proxy's own service, for all callers together.

    An outbound route of the same name is counted apart.
    """
    numbers = {
        "vhost.default/alice.vcluster.8080|default/routes/buy.upstream_rq_2xx": 3,
        "vhost.default/alice.vcluster.8080|rest.upstream_rq_4xx": 2,
        "vhost.default/alice.vcluster.other.upstream_rq_2xx": 9,
        "vhost.default/shop.route.8080|default/routes/buy.upstream_rq_2xx": 5,
    }
    times = {"vhost.default/alice.vcluster.8080|rest.upstream_rq_time": [(4.0, 0.1, 2)]}
    text = written(Edges().families(read(_answer(numbers, times)), ALICE))
    result = {
        (labels["direction"], labels.get("source_service"), labels["route"]): value
        for labels, value in _values(text, "meshwright_route_requests")
    }
    assert result == {
        ("inbound", None, "default/routes/buy"): 3,
        ("inbound", None, "rest"): 2,
        ("outbound", "alice", "default/routes/buy"): 5,
    }
    lasted = _values(text, "meshwright_route_request_duration_seconds")
    ends = ("destination_service", "destination_port", "route")
    assert [tuple(labels[end] for end in ends) for labels, _ in lasted] == [("alice", "8080", "rest")] * 2


def test_failing_routes_keep_their_own_series() -> None:
    """Series are given by use, and failed requests count as use."""
    well = {f"vhost.default/shop.route.80|default/a{each}.upstream_rq_2xx": 1 for each in range(MOST_ROUTES)}
    numbers = {**well, "vhost.default/shop.route.80|default/z.upstream_rq_5xx": 9}
    text = written(Edges().families(read(_answer(numbers, {})), ALICE))
    result = {labels["route"]: value for labels, value in _values(text, "meshwright_route_requests")}
    assert (len(result), result["default/z"], result["others"]) == (MOST_ROUTES + 1, 9, 1)


def _values(text: str, name: str) -> list[tuple[dict[str, str], float]]:
    return [
        (sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        if family.name == name
        for sample in family.samples
    ]


def _mesh(services: int) -> dict[str, Any]:
    """Return the statistics of a proxy that has called `services` services in all possible ways."""
    numbers = dict[str, int]()
    times = dict[str, list[tuple[float, float, int]]]()
    classes = [f"rq_{digit}xx" for digit in range(1, 6)]
    both = ("cx_total", "cx_rx_bytes_total", "cx_tx_bytes_total")
    for number in range(services):
        for scope, prefix, counts in (
            ("http", f"rds-outbound.n/s{number}|80", (*classes, *both)),
            ("tcp", f"outbound.n/s{number}|90", both),
            ("http", f"rds-inbound.{number}", (*classes, *both)),
        ):
            numbers |= {f"{scope}.{prefix}.downstream_{what}": number + 1 for what in counts}
            if scope == "http":
                times[f"{scope}.{prefix}.downstream_rq_time"] = [(3, 0.1, number + 1)]
        cluster = f"cluster.n/s{number}|80.upstream"
        counts = (*classes, "rq_retry", "cx_total", "cx_active", "cx_connect_fail")
        numbers |= {f"{cluster}_{what}": number + 1 for what in counts}
        numbers[f"cluster.n/s{number}|80.grpc.failure"] = 1
        route = f"vhost.n/s{number}.route.80|n/split/slow.upstream"
        numbers |= {f"{route}_{what}": number + 1 for what in classes}
        times[f"{route}_rq_time"] = [(3, 0.1, number + 1)]
        times[f"{cluster}_rq_time"] = [(3, 0.1, number + 1)]
    return _answer(numbers, times)


def _samples(text: str) -> Iterator[tuple[str, float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield f"{sample.name}{sorted(sample.labels.items())}", sample.value


def test_proxy_that_calls_a_thousand_services_has_few_series() -> None:
    """All requests are counted, and no series is exported twice.

    Services without series of their own are counted under "others".
    """
    edges = Edges()
    text = written(edges.families(read(_mesh(1000)), ALICE))
    result = list(_samples(text))
    assert (
        500 < len(result) == len(dict(result)) <= BUDGET - 50
    )  # leaves room for the metrics of Envoy and of the agent
    classes = [value for name, value in result if name.startswith("meshwright_backend_requests_total")]
    assert sum(classes) == 5 * sum(range(1, 1001))
    assert 'destination_service="others"' in text


def test_no_counter_decreases_when_more_services_are_called() -> None:
    """A series of its own is kept, although other services are called more often later."""
    edges = Edges()
    before = dict(_samples(written(edges.families(read(_mesh(100)), ALICE))))
    after = dict(_samples(written(edges.families(read(_mesh(1000)), ALICE))))
    assert before.keys() <= after.keys()
    assert all(after[name] >= value for name, value in before.items())


def test_most_used_new_names_get_their_own_series() -> None:
    """Of equally used names the first by name wins, so that the order of an answer does not matter."""
    bounded = BoundedSeries[str](2)
    assert bounded.own({"a": 1, "c": 5, "b": 5, "d": 2}) == {"b", "c"}
    assert bounded.own({"a": 100, "c": 5}) == {"c"}


@given(st.text(), st.text(), st.floats(0, 1e12, allow_nan=False))
def test_label_values_are_escaped(value: str, words: str, number: float) -> None:
    """Quotes, backslashes and newlines in labels and help texts are escaped."""
    value, words = (item.replace("\r", "") for item in (value, words))
    family = Family("a_total", Kind.COUNTER, words, (Sample((("of", f"x{value}"),), number),))
    text = written((family,))
    assert len([line for line in text.split("\n") if line]) == 3
    assert f'a_total{{of="x{_escaped(value)}"}} ' in text


def test_each_edge_metric_is_documented() -> None:
    """Each family is in docs/operate/metrics.md with its type."""
    documented = (Path(__file__).parents[4] / "docs" / "operate" / "metrics.md").read_text()
    for family in Edges().families(read({}), ALICE):
        assert f"| `{family.name}` | {family.kind} |" in documented


def _escaped(value: str) -> str:
    return "".join({"\\": "\\\\", '"': '\\"', "\n": "\\n"}.get(item, item) for item in value)


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 4), st.integers(1, 9))))
def test_histogram_buckets_are_cumulative(drawn: list[tuple[int, int, int]]) -> None:
    """Buckets never decrease, and the last one has all requests, for all bins that Envoy can report."""
    bins = [Bin(digits * 10.0**power / 10, 10.0**power / 10, count) for digits, power, count in drawn]
    *buckets, total, count = [sample.value for sample in histogram((), bins)]
    assert len(buckets) == len(BOUNDS_MS) + 1
    assert buckets == sorted(buckets)
    assert buckets[-1] == count == sum(item.count for item in bins)
    assert total >= sum(item.least * item.count for item in bins) / 1000 - 1e-6


def test_unknown_entries_of_an_answer_are_skipped() -> None:
    """Entries of another form are skipped and the others are read; an unknown answer gives no edges."""
    good = {"name": "tcp.outbound.a/b|80.downstream_cx_total", "value": 1}
    odd: list[Any] = [None, 7, {}, {"name": 7}, {"name": good["name"], "value": "x"}, {"histograms": [1]}]
    assert read({"stats": [*odd, good]}).numbers["tcp"] == {"outbound.a/b|80": {"downstream_cx_total": 1}}
    for answer in ({}, {"stats": 7}, {"stats": {"a": 1}}):
        assert Edges().families(read(answer), ALICE) == Edges().families(Statistics(*_nothing()), ALICE)


def _nothing() -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    return tuple({scope: {} for scope in ("http", "tcp", "cluster", "vhost")} for _ in range(2))  # type: ignore[return-value] # two


def test_service_account_is_read_from_the_service_certificate() -> None:
    """The account is read from the SPIFFE ID. The proxy's own certificate and roots have none."""
    proxy = {"cert_chain": [{"subject_alt_names": [{"dns": "u.alice.default"}]}], "ca_cert": [{}]}
    uri = {"uri": "spiffe://cluster.local/ns/default/sa/alice-account"}
    assert (
        account_of({"certificates": [proxy, {"cert_chain": [{"subject_alt_names": [uri]}]}]})
        == "alice-account"
    )
    assert account_of({"certificates": [proxy]}) == ""
    assert account_of({}) == ""
