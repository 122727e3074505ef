"""What the control plane is told of what Envoy counted: everything, once."""

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
    """Return what Envoy's admin interface answers."""
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
    """Return a report as the library reads it; nothing in it is unknown to it."""
    found = wire.ReportRequest.FromString(written)
    assert found.SerializeToString() == written
    return found


def called_at(port: int) -> wire.Called:
    """Return the shop's port."""
    return wire.Called(namespace="default", service="shop", port=port)


def test_a_report_has_what_was_counted_since_the_one_before() -> None:
    """In the control plane's words; what has not grown is not in it, and what is open now never is."""
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
    found = _read(reports.next(since(read(before), read(now)), 10.0))
    assert found == wire.ReportRequest(
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


def test_times_are_told_that_envoy_tells_later_than_the_numbers() -> None:
    """Counters are there at once, histograms up to five seconds later: by then no number may have changed."""
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
    found = _read(Reports("run").next(later, 10.0))
    told = [each.requests for every in (found.edges, found.backends, found.routes) for each in every]
    assert [(sum(each.by_class), sum(each.by_time)) for each in told] == [(0, 1)] * 3


def test_a_backend_at_a_port_that_has_a_name_is_told_by_it() -> None:
    """A Service may name its target port, and so does the cluster."""
    now = counted(
        {"cluster.default/shop-v1|http-web.upstream_rq_2xx": 2, f"cluster.{BACK}.upstream_rq_2xx": 1}
    )
    found = _read(Reports("run").next(since(NOTHING, read(now)), 10.0))
    by_port = {
        (each.called.port, each.called.port_name): each.requests.by_class[1] for each in found.backends
    }
    assert by_port == {(0, "http-web"): 2, (8080, ""): 1}


def test_what_a_proxy_ends_is_told_as_one_failure_of_the_backend() -> None:
    """Envoy counts it as 5xx and as failed by gRPC, of each backend for itself; never fewer than none."""
    at = {each: f"cluster.default/shop-{each}|8080" for each in ("v1", "v2", "v3")}
    now = counted(
        {
            f"{at['v1']}.upstream_rq_5xx": 1,
            f"{at['v1']}.grpc.failure": 3,
            f"{at['v2']}.grpc.failure": 2,
            f"{at['v3']}.upstream_rq_5xx": 2,
            f"{at['v3']}.grpc.failure": 1,
        }
    )
    found = _read(Reports("run").next(since(NOTHING, read(now)), 10.0))
    assert {each.called.service: each.requests.grpc_failed for each in found.backends} == {
        "shop-v1": 2,
        "shop-v2": 2,
        "shop-v3": 0,
    }


def test_a_route_is_told_by_a_name_that_can_be_taken() -> None:
    """A report that has a name too long or unprintable is not taken, with all that is in it."""
    names = ("default/canary/api", "default/canary/two\x7flines", "x" * 300)
    numbers = {f"vhost.default/shop.route.80|{each}.upstream_rq_2xx": 2 for each in names}
    found = _read(Reports("run").next(since(NOTHING, read(counted(numbers))), 10.0))
    assert {(each.called.service, each.name, each.requests.by_class[1]) for each in found.routes} == {
        ("shop", "default/canary/api", 2),
        ("shop", "default/canary/twolines", 2),
        ("shop", "x" * 253, 2),
    }
    assert {each.direction for each in found.routes} == {wire.OUTBOUND}
    assert len(report(found).rows) == 3


def names_of(kind: str) -> set[str]:
    """Return the names of all golden resources of a kind."""
    files = sorted((Path(__file__).parents[3] / "golden").glob(f"*/*.{kind}.yaml"))
    return {
        found[1].strip().strip("'")
        for each in files
        for found in re.finditer(r"^(?:name|clusterName): (.*)$", each.read_text(), re.MULTILINE)
    }


def test_whatever_a_proxy_is_given_can_be_told() -> None:
    """Statistics by the names of all golden resources, colons as Envoy has them: a report that is taken."""
    clusters, routes = (
        {each.replace(":", "_") for each in names_of(kind)} for kind in ("clusters", "routes")
    )
    assert {"default/web|main", "rds-inbound.8080"} <= clusters | routes
    numbers = {f"cluster.{each}.upstream_rq_2xx": 1 for each in clusters}
    numbers |= {f"cluster.{each}.grpc.failure": 1 for each in clusters}
    numbers |= {f"http.{each}.downstream_rq_2xx": 1 for each in routes}
    found = report(_read(Reports("run").next(since(NOTHING, read(counted(numbers))), 10.0)))
    of = [calls for calls, _ in found.rows]
    assert len([each for each in of if each.kind is Kind.BACKEND]) > 20
    assert any(each.called.port_name == "main" for each in of)


def test_a_report_stays_small_whatever_is_called() -> None:
    """What has no row of its own is told together: below the 64 KiB that the control plane takes."""
    numbers = {
        f"{scope}.{prefix}ns-{n:040}/service-{n:040}|80.{what}": n + 1
        for n in range(1000)
        for scope, prefix, what in (
            ("http", "rds-outbound.", "downstream_rq_2xx"),
            ("cluster", "", "upstream_rq_2xx"),
        )
    }
    found = _read(Reports("run").next(since(NOTHING, read(counted(numbers))), 10.0))
    assert (len(found.edges), len(found.backends)) == (MOST_EDGES + 1, MOST_BACKENDS + 1)
    total = 1000 * 1001 // 2
    assert sum(each.requests.by_class[1] for each in found.edges) == total
    assert sum(each.requests.by_class[1] for each in found.backends) == total
    assert found.ByteSize() < 64 * 1024


READINGS = st.lists(
    st.tuples(
        st.booleans(),
        st.dictionaries(st.sampled_from([SHOP, BOOKS]), st.integers(0, 5)),
        st.dictionaries(st.sampled_from([1.0, 5.0, 99.0]), st.integers(0, 5)),
    ),
    max_size=12,
)


@given(READINGS)
def test_increments_come_to_what_was_counted(
    steps: list[tuple[bool, dict[str, int], dict[float, int]]],
) -> None:
    """Over any readings, and Envoys that begin anew with whatever they have counted by then."""
    counts, bins = Counter[str](), Counter[float]()
    told, told_bins = Counter[str](), Counter[float]()
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
            told[of] += numbers["downstream_rq_2xx"]
        for each in grown.times["http"].get(SHOP, ()):
            told_bins[each.least] += each.count
        seen = now
    assert (+told, +told_bins) == (+all_counts, +all_bins)


def _would_go_back(before: Counter[Any], more: Mapping[Any, int]) -> bool:
    """Say whether a new Envoy is seen as one: no number of its first reading is as large as before."""
    return all(more.get(each, 0) < count for each, count in before.items() if count)


class Admin(EnvoyAdmin):
    """An Envoy's admin interface that says what a test wants."""

    def __init__(self) -> None:
        self.requests: int | None = 0

    async def json(self, path: str, method: str = "GET") -> Any:
        """Answer as told; None does not."""
        if self.requests is None:
            raise AdminUnreachable("it does not run")
        return counted({f"http.{SHOP}.downstream_rq_2xx": self.requests})


class Scene:
    """An agent's task, its clock, and a control plane that answers one after the other what it is told."""

    def __init__(self, *answers: int | ReportRefused) -> None:
        self.admin = Admin()
        self.now = 100.0
        self.got: list[tuple[int, float, int]] = []
        self._answers: Iterator[int | ReportRefused] = iter(answers)
        dice = random.Random(1)  # noqa: S311 - a test's
        self.told = StatisticsReporter(self.admin, self._send, monotonic=lambda: self.now, dice=dice)

    async def after(self, seconds: float, requests: int | None) -> float:
        """Let time pass until so many requests were counted in all, and tell."""
        self.now += seconds
        self.admin.requests = requests
        return await self.told.tell()

    async def _send(self, written: bytes) -> int:
        report = _read(written)
        self.got.append(
            (report.number, report.seconds, sum(sum(each.requests.by_class) for each in report.edges))
        )
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_it_is_told_as_often_as_it_is_wanted() -> None:
    """What was counted since; also that it was nothing. An Envoy that is not there is asked again."""
    scene = Scene(10, 60, 1_000_000, 0)
    assert await scene.after(5, None) == FIRST_SECONDS
    assert await scene.after(5, 3) == 10
    assert await scene.after(10, 3) == 60
    assert await scene.after(60, 7) == 3600
    assert await scene.after(60, 8) == 5
    assert scene.got == [(1, 10.0, 3), (2, 10.0, 0), (3, 60.0, 4), (4, 60.0, 1)]


async def test_what_has_no_answer_is_told_again() -> None:
    """With its number, and nothing of what came after it: that is in the next."""
    scene = Scene(ReportRefused("away"), ReportRefused("away"), 10, 10)
    with structlog.testing.capture_logs() as logs:
        pauses = [await scene.after(10, requests) for requests in (3, 4, 5)]
        assert await scene.after(10, 9) == 10
    assert [each["reason"] for each in logs] == ["away"]
    assert 10 <= pauses[0] <= 20
    assert 20 <= pauses[1] <= 40
    assert scene.got == [(1, 10.0, 3), (1, 10.0, 3), (1, 10.0, 3), (2, 30.0, 6)]


async def test_who_does_not_want_to_be_told_is_asked_seldom() -> None:
    """An older control plane knows no such call; one that is away for long is not asked more often."""
    scene = Scene(ReportRefused("no such method", refused=True), *(ReportRefused("away") for _ in range(9)))
    pauses = [await scene.after(10, 3) for _ in range(10)]
    assert LONGEST_PAUSE / 2 <= pauses[0] <= LONGEST_PAUSE
    assert LONGEST_PAUSE / 2 <= pauses[-1] <= LONGEST_PAUSE


async def test_a_report_that_is_unfit_keeps_no_other_back() -> None:
    """It is not told again; what is counted after it is."""
    scene = Scene(ReportRefused("a number is too large", refused=True, unfit=True), 10)
    await scene.after(10, 3)
    assert await scene.after(300, 4) == 10
    assert scene.got == [(1, 10.0, 3), (2, 300.0, 1)]


async def test_nothing_that_goes_wrong_in_telling_ends_the_task() -> None:
    """The agent ends with its tasks, and Envoy with the agent: that a mistake of ours is not worth."""
    scene = Scene(ZeroDivisionError("ours"), 10)  # type: ignore[arg-type] # none that it should raise
    with structlog.testing.capture_logs() as logs:
        assert await scene.after(10, 3) == LONGEST_PAUSE
    assert [(each["event"], each["log_level"]) for each in logs] == [
        ("statistics report failed with an internal error; the agent tries again", "error")
    ]
    assert await scene.after(10, 4) == 10
