"""Tests of reports of Envoy's statistics to the control plane: every count is reported once."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import structlog.testing
from hypothesis import given
from hypothesis import strategies as st

from meshwright.agent.envoy.admin import AdminUnreachable, EnvoyAdmin
from meshwright.agent.statistics.edge_totals import MOST_BACKENDS, MOST_EDGES
from meshwright.agent.statistics.increments import NOTHING, since
from meshwright.agent.statistics.report import Reports
from meshwright.agent.statistics.report_client import ReportRefused
from meshwright.agent.statistics.reporting import FIRST_SECONDS, LONGEST_PAUSE, StatisticsReporter
from meshwright.agent.statistics.statistics import Bin, Statistics, read
from meshwright.enrolment.reports import report
from meshwright.traffic.statistics import Kind
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire

SHOP, BOOKS = "rds-outbound.default/shop|80", "rds-outbound.default/books|80"
BACK = "default/shop-v1|8080"


def counted(
    numbers: Mapping[str, int], times: Mapping[str, list[tuple[float, float, int]]] | None = None
) -> dict[str, Any]:
    """Return an answer of Envoy's admin interface."""
    details = [
        {
            "name": name,
            "totals": [{"lower_bound": low, "width": width, "count": count} for low, width, count in bins],
        }
        for name, bins in (times or {}).items()
    ]
    stats: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in numbers.items()]
    return {"stats": [*stats, {"histograms": {"details": details}}]}


def _read(written: bytes) -> wire.ReportRequest:
    """Return a report as the library reads it, without unknown fields."""
    report_request = wire.ReportRequest.FromString(written)
    assert report_request.SerializeToString() == written
    return report_request


def called_at(port: int) -> wire.Called:
    """Return the shop's port."""
    return wire.Called(namespace="default", service="shop", port=port)


def test_report_has_the_growth_since_the_report_before() -> None:
    """Only growth is reported, in the control plane's protocol.

    Unchanged counters and gauges of open connections are left out.
    """
    before = counted(
        {
            f"http.{SHOP}.downstream_rq_2xx": 7,
            f"http.{SHOP}.downstream_cx_total": 1,
            f"http.{BOOKS}.downstream_rq_2xx": 5,
            f"cluster.{BACK}.upstream_rq_2xx": 7,
        },
        {f"http.{SHOP}.downstream_rq_time": [(4, 0.1, 7)]},
    )
    now = counted(
        {
            f"http.{SHOP}.downstream_rq_2xx": 9,
            f"http.{SHOP}.downstream_rq_5xx": 1,
            f"http.{SHOP}.downstream_cx_total": 2,
            f"http.{SHOP}.downstream_cx_rx_bytes_total": 100,
            f"http.{SHOP}.downstream_cx_tx_bytes_total": 900,
            f"http.{BOOKS}.downstream_rq_2xx": 5,
            "http.rds-inbound.8080.downstream_rq_4xx": 3,
            "tcp.outbound.default/db|5432.downstream_cx_total": 4,
            f"cluster.{BACK}.upstream_rq_2xx": 9,
            f"cluster.{BACK}.upstream_rq_retry": 1,
            f"cluster.{BACK}.upstream_cx_connect_fail": 2,
            f"cluster.{BACK}.upstream_cx_active": 3,
            f"cluster.{BACK}.grpc.failure": 2,
            "cluster.default/shop|8080.grpc.failure": 1,
            "cluster.default/alice|8080|local.grpc.failure": 3,
        },
        {f"http.{SHOP}.downstream_rq_time": [(4, 0.1, 8), (5, 0.1, 1), (12000, 1000, 1)]},
    )
    reports = Reports("run")
    assert _read(reports.next(since(NOTHING, read(counted({}))), 3.0)) == wire.ReportRequest(
        run="run", number=1, seconds=3.0
    )
    report_request = _read(reports.next(since(read(before), read(now)), 10.0))
    assert report_request == wire.ReportRequest(
        run="run",
        number=2,
        seconds=10.0,
        edges=[
            wire.Edge(
                direction=wire.INBOUND,
                protocol=wire.HTTP,
                called=wire.Called(port=8080),
                requests=wire.Requests(by_class=(0, 0, 0, 3, 0), grpc_failed=3),
                connections=wire.Connections(),
            ),
            wire.Edge(
                direction=wire.OUTBOUND,
                protocol=wire.HTTP,
                called=called_at(80),
                requests=wire.Requests(
                    by_class=(0, 2, 0, 0, 1),
                    by_time=(1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1),
                    seconds=12.5091,
                    grpc_failed=1,
                ),
                connections=wire.Connections(opened=1, sent_bytes=100, received_bytes=900),
            ),
            wire.Edge(
                direction=wire.OUTBOUND,
                protocol=wire.TCP,
                called=wire.Called(namespace="default", service="db", port=5432),
                requests=wire.Requests(),
                connections=wire.Connections(opened=4),
            ),
        ],
        backends=[
            wire.Backend(
                called=called_at(8080),
                requests=wire.Requests(grpc_failed=1),
                connections=wire.Connections(),
            ),
            wire.Backend(
                called=wire.Called(namespace="default", service="shop-v1", port=8080),
                requests=wire.Requests(by_class=(0, 2, 0, 0, 0), grpc_failed=2),
                connections=wire.Connections(failed=2),
                retries=1,
            ),
        ],
    )


def test_late_durations_are_reported_without_new_requests() -> None:
    """Durations are reported even if no counter has grown.

    Envoy updates histograms up to five seconds after counters.
    """
    numbers = {
        f"http.{SHOP}.downstream_rq_2xx": 1,
        f"cluster.{BACK}.upstream_rq_2xx": 1,
        "vhost.default/shop.route.80|rest.upstream_rq_2xx": 1,
    }
    times = {
        f"http.{SHOP}.downstream_rq_time": [(4.0, 0.1, 1)],
        f"cluster.{BACK}.upstream_rq_time": [(4.0, 0.1, 1)],
        "vhost.default/shop.route.80|rest.upstream_rq_time": [(4.0, 0.1, 1)],
    }
    later = since(read(counted(numbers)), read(counted(numbers, times)))
    report_request = _read(Reports("run").next(later, 10.0))
    messages = [
        item.requests
        for every in (report_request.edges, report_request.backends, report_request.routes)
        for item in every
    ]
    assert [(sum(requests.by_class), sum(requests.by_time)) for requests in messages] == [(0, 1)] * 3


def test_backend_with_a_named_port_is_reported_by_the_name() -> None:
    """A Service can name its target port, and the cluster has the same name."""
    now = counted(
        {"cluster.default/shop-v1|http-web.upstream_rq_2xx": 2, f"cluster.{BACK}.upstream_rq_2xx": 1}
    )
    report_request = _read(Reports("run").next(since(NOTHING, read(now)), 10.0))
    by_port = {
        (backend.called.port, backend.called.port_name): backend.requests.by_class[1]
        for backend in report_request.backends
    }
    assert by_port == {(0, "http-web"): 2, (8080, ""): 1}


def test_error_counted_twice_is_reported_as_one_backend_failure() -> None:
    """Envoy counts such an error as 5xx and as a failed gRPC call.

    The 5xx count is subtracted for each backend, to at least 0.
    """
    at = {item: f"cluster.default/shop-{item}|8080" for item in ("v1", "v2", "v3")}
    now = counted(
        {
            f"{at['v1']}.upstream_rq_5xx": 1,
            f"{at['v1']}.grpc.failure": 3,
            f"{at['v2']}.grpc.failure": 2,
            f"{at['v3']}.upstream_rq_5xx": 2,
            f"{at['v3']}.grpc.failure": 1,
        }
    )
    report_request = _read(Reports("run").next(since(NOTHING, read(now)), 10.0))
    assert {backend.called.service: backend.requests.grpc_failed for backend in report_request.backends} == {
        "shop-v1": 2,
        "shop-v2": 2,
        "shop-v3": 0,
    }


def test_route_name_is_shortened_and_made_printable() -> None:
    """Names are cut and cleaned, because the control plane refuses a whole report with an invalid name."""
    names = ("default/canary/api", "default/canary/two\x7flines", "x" * 300)
    numbers = {f"vhost.default/shop.route.80|{name}.upstream_rq_2xx": 2 for name in names}
    report_request = _read(Reports("run").next(since(NOTHING, read(counted(numbers))), 10.0))
    assert {
        (route.called.service, route.name, route.requests.by_class[1]) for route in report_request.routes
    } == {
        ("shop", "default/canary/api", 2),
        ("shop", "default/canary/twolines", 2),
        ("shop", "x" * 253, 2),
    }
    assert {route.direction for route in report_request.routes} == {wire.OUTBOUND}
    assert len(report(report_request).rows) == 3


def names_of(kind: str) -> set[str]:
    """Return the names of all golden resources of a kind."""
    files = sorted((Path(__file__).parents[3] / "golden").glob(f"*/*.{kind}.yaml"))
    return {
        match[1].strip().strip("'")
        for file in files
        for match in re.finditer(r"^(?:name|clusterName): (.*)$", file.read_text(), re.MULTILINE)
    }


def test_statistics_of_all_golden_resources_can_be_reported() -> None:
    """Statistics with the names of all golden clusters and routes make an accepted report."""
    clusters, routes = (
        {item.replace(":", "_") for item in names_of(kind)} for kind in ("clusters", "routes")
    )
    assert {"default/web|main", "rds-inbound.8080"} <= clusters | routes
    numbers = {f"cluster.{cluster}.upstream_rq_2xx": 1 for cluster in clusters}
    numbers |= {f"cluster.{cluster}.grpc.failure": 1 for cluster in clusters}
    numbers |= {f"http.{route}.downstream_rq_2xx": 1 for route in routes}
    result = report(_read(Reports("run").next(since(NOTHING, read(counted(numbers))), 10.0)))
    of = [calls for calls, _ in result.rows]
    assert len([item for item in of if item.kind is Kind.BACKEND]) > 20
    assert any(item.called.port_name == "main" for item in of)


def test_report_stays_below_64_kib() -> None:
    """Services without a row of their own are summed up, because the control plane accepts at most 64 KiB."""
    numbers = {
        f"{scope}.{prefix}ns-{n:040}/service-{n:040}|80.{what}": n + 1
        for n in range(1000)
        for scope, prefix, what in (
            ("http", "rds-outbound.", "downstream_rq_2xx"),
            ("cluster", "", "upstream_rq_2xx"),
        )
    }
    report_request = _read(Reports("run").next(since(NOTHING, read(counted(numbers))), 10.0))
    assert (len(report_request.edges), len(report_request.backends)) == (MOST_EDGES + 1, MOST_BACKENDS + 1)
    total = 1000 * 1001 // 2
    assert sum(edge.requests.by_class[1] for edge in report_request.edges) == total
    assert sum(backend.requests.by_class[1] for backend in report_request.backends) == total
    assert report_request.ByteSize() < 64 * 1024


READINGS = st.lists(
    st.tuples(
        st.booleans(),
        st.dictionaries(st.sampled_from([SHOP, BOOKS]), st.integers(0, 5)),
        st.dictionaries(st.sampled_from([1.0, 5.0, 99.0]), st.integers(0, 5)),
    ),
    max_size=12,
)


@given(READINGS)
def test_increments_add_up_to_the_counts(
    steps: list[tuple[bool, dict[str, int], dict[float, int]]],
) -> None:
    """The increments add up to all counts, for any readings and restarts of Envoy."""
    counts, bins = Counter[str](), Counter[float]()
    answer, told_bins = Counter[str](), Counter[float]()
    all_counts, all_bins = Counter[str](), Counter[float]()
    seen = NOTHING
    for is_new, more, times in steps:
        if is_new and _would_go_back(counts, more) and _would_go_back(bins, times):
            counts, bins = Counter(), Counter()
        counts.update(more)
        bins.update(times)
        all_counts.update(more)
        all_bins.update(times)
        now = Statistics(
            {"http": {of: {"downstream_rq_2xx": count} for of, count in counts.items()}},
            {"http": {SHOP: tuple(Bin(least, 0.1, count) for least, count in sorted(bins.items()))}},
        )
        grown = since(seen, now)
        for of, numbers in grown.numbers["http"].items():
            answer[of] += numbers["downstream_rq_2xx"]
        for item in grown.times["http"].get(SHOP, ()):
            told_bins[item.least] += item.count
        seen = now
    assert (+answer, +told_bins) == (+all_counts, +all_bins)


def _would_go_back(before: Counter[Any], more: Mapping[Any, int]) -> bool:
    """Return whether no number of a new Envoy's first reading is as large as before."""
    return all(more.get(item, 0) < count for item, count in before.items() if count)


class Admin(EnvoyAdmin):
    """Fake admin interface with a configurable number of requests."""

    def __init__(self) -> None:
        self.requests: int | None = 0

    async def json(self, path: str, method: str = "GET") -> Any:
        """Return the statistics; raise AdminUnreachable if the number is None."""
        if self.requests is None:
            raise AdminUnreachable("it does not run")
        return counted({f"http.{SHOP}.downstream_rq_2xx": self.requests})


class Scene:
    """A statistics reporter with a fake Envoy, control plane and clock."""

    def __init__(self, *answers: int | ReportRefused) -> None:
        self.admin = Admin()
        self.now = 100.0
        self.got: list[tuple[int, float, int]] = []
        self._answers: Iterator[int | ReportRefused] = iter(answers)
        dice = random.Random(1)  # noqa: S311 - a test's
        self.told = StatisticsReporter(self.admin, self._send, monotonic=lambda: self.now, dice=dice)

    async def after(self, seconds: float, requests: int | None) -> float:
        """Advance the clock, set the total number of requests, and report; return the pause."""
        self.now += seconds
        self.admin.requests = requests
        return await self.told.send_report()

    async def _send(self, written: bytes) -> int:
        report = _read(written)
        self.got.append(
            (report.number, report.seconds, sum(sum(edge.requests.by_class) for edge in report.edges))
        )
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_reports_are_sent_at_the_requested_interval() -> None:
    """Each report has the growth since the last, which can be 0.

    Intervals are bounded, and an unreachable Envoy is retried.
    """
    scene = Scene(10, 60, 1_000_000, 0)
    assert await scene.after(5, None) == FIRST_SECONDS
    assert await scene.after(5, 3) == 10
    assert await scene.after(10, 3) == 60
    assert await scene.after(60, 7) == 3600
    assert await scene.after(60, 8) == 5
    assert scene.got == [(1, 10.0, 3), (2, 10.0, 0), (3, 60.0, 4), (4, 60.0, 1)]


async def test_unanswered_report_is_sent_again_unchanged() -> None:
    """The same report is sent again with its number; later growth is in the next report."""
    scene = Scene(ReportRefused("away"), ReportRefused("away"), 10, 10)
    with structlog.testing.capture_logs() as logs:
        pauses = [await scene.after(10, requests) for requests in (3, 4, 5)]
        assert await scene.after(10, 9) == 10
    assert [log["reason"] for log in logs] == ["away"]
    assert 10 <= pauses[0] <= 20
    assert 20 <= pauses[1] <= 40
    assert scene.got == [(1, 10.0, 3), (1, 10.0, 3), (1, 10.0, 3), (2, 30.0, 6)]


async def test_pauses_after_refused_or_failed_reports_are_long() -> None:
    """An older control plane refuses the method and is asked seldom.

    Repeated failures reach the same pause.
    """
    scene = Scene(ReportRefused("no such method", refused=True), *(ReportRefused("away") for _ in range(9)))
    pauses = [await scene.after(10, 3) for _ in range(10)]
    assert LONGEST_PAUSE / 2 <= pauses[0] <= LONGEST_PAUSE
    assert LONGEST_PAUSE / 2 <= pauses[-1] <= LONGEST_PAUSE


async def test_unfit_report_is_dropped_and_the_next_one_is_sent() -> None:
    """A report with an invalid content is not sent again, and later growth is reported."""
    scene = Scene(ReportRefused("a number is too large", refused=True, unfit=True), 10)
    await scene.after(10, 3)
    assert await scene.after(300, 4) == 10
    assert scene.got == [(1, 10.0, 3), (2, 300.0, 1)]


async def test_internal_error_does_not_end_the_reporter() -> None:
    """An internal error is logged and retried, because the agent, and Envoy with it, ends with its tasks."""
    scene = Scene(ZeroDivisionError("ours"), 10)  # type: ignore[arg-type] # none that it should raise
    with structlog.testing.capture_logs() as logs:
        assert await scene.after(10, 3) == LONGEST_PAUSE
    assert [(log["event"], log["log_level"]) for log in logs] == [
        ("statistics report failed with an internal error; the agent tries again", "error")
    ]
    assert await scene.after(10, 4) == 10
