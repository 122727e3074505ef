"""Tests of an agent's metrics from a real Envoy: gRPC failures behind a status of 200, and routes."""

import json
from collections import Counter

import grpc
import grpc.aio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from meshwright.agent.statistics.edge_totals import WorkloadLabels
from meshwright.agent.statistics.edges import Edges
from meshwright.agent.statistics.exposition import written
from meshwright.agent.statistics.increments import since
from meshwright.agent.statistics.report import Reports
from meshwright.agent.statistics.statistics import STATS_PATH, Statistics, read
from meshwright.enrolment.reports import report
from meshwright.traffic.statistics import Kind
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire
from tests.e2e.policy.applications import GRPC
from tests.e2e.policy.policies import ALL, EVERYTHING, http, path, route_policy, routes, split, target
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]
OPEN = (*EVERYTHING, *(target(item, f"shop/{item}", ("shop/client",), *ALL) for item in ("v1", "v2")))
EDGE = ("direction", "destination_service", "destination_port")
FAILED, REQUESTS, ROUTES = (
    f"meshwright_{item}" for item in ("edge_grpc_failed", "edge_requests", "route_requests")
)
BEHIND = "meshwright_backend_grpc_failed"
PORTS = ("destination_port", "backend_port")


async def statistics(mesh: PolicyMesh, workload: str) -> Statistics:
    """Return the statistics of a workload's Envoy."""
    return read(json.loads(await mesh.live.envoys[workload].text(STATS_PATH)))


async def counts(
    mesh: PolicyMesh, workload: str, family: str, *labels: str, port: int | None = None
) -> Counter[tuple[str, ...]]:
    """Return the values of a metric on the page of a workload's agent, by some of its labels.

    `port` excludes the samples of other ports. They may be of earlier calls: Envoy merges its histograms
    every 5 s, and a row appears on the page with its first latency.
    """
    page = written(Edges().families(await statistics(mesh, workload), WorkloadLabels("shop", workload)))
    return Counter(
        {
            tuple(sample.labels.get(label, "") for label in labels): int(sample.value)
            for metric in text_string_to_metric_families(page)
            if metric.name == family
            for sample in metric.samples
            if port is None or str(port) in (sample.labels.get(name) for name in PORTS)
        }
    )


async def say(mesh: PolicyMesh, service: str, *methods: str) -> list[grpc.StatusCode]:
    """Call methods as the client's application; return the status of each call."""
    address, port = mesh.place("client", service, GRPC)
    result = []
    async with grpc.aio.insecure_channel(f"{address}:{port}") as channel:
        for method in methods:
            calling = channel.unary_unary(f"/test.Echo/{method}")(b"hello")
            result.append(await calling.code())
    return result


async def test_failed_grpc_calls_are_failures_at_both_ends(mesh: PolicyMesh) -> None:
    """The status in trailers counts, of the application or of a denying sidecar. HTTP's status is 200."""
    allowed = routes("some", path("/test.Echo/(Say|Missing)", "POST"))
    await mesh.enforce(allowed, target("t", "shop/v1", ("shop/client",), http("some")))

    async def seen() -> tuple[Counter[tuple[str, ...]], ...]:
        return (
            await counts(mesh, "client", FAILED, *EDGE, port=GRPC),
            await counts(mesh, "client", REQUESTS, *EDGE, "status_class", port=GRPC),
            await counts(mesh, "client", BEHIND, "backend_service", "backend_port", port=GRPC),
            await counts(mesh, "v1", FAILED, *EDGE, port=GRPC),
        )

    before = await seen()
    assert await say(mesh, "v1", "Say", "Missing", "Count", "Say") == [
        grpc.StatusCode.OK,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.OK,
    ]
    edge = ("outbound", "v1", str(GRPC))

    async def are_told() -> bool:
        grown = [dict(now - then) for now, then in zip(await seen(), before, strict=True)]
        return grown == [
            {edge: 2},
            {(*edge, "2xx"): 4},
            {("v1", str(GRPC)): 2},
            {("inbound", "v1", str(GRPC)): 2},
        ]

    await until(are_told)


async def test_grpc_call_that_the_proxy_ends_is_one_failure_of_the_backend(mesh: PolicyMesh) -> None:
    """Envoy counts it twice, as a 504 and by its gRPC status, so the report must count it once.

    Latencies of earlier calls to other ports appear up to 5 s late, when Envoy merges its histograms, so only
    the rows of the called port are compared.
    """
    impatient = route_policy("impatient", "v1", {"timeout": {"request": "300ms"}})
    await mesh.enforce(*OPEN, impatient)
    before = await statistics(mesh, "client")
    assert await say(mesh, "v1", "Say", "Never", "Fail") == [
        grpc.StatusCode.OK,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.UNAVAILABLE,
    ]
    increments = since(before, await statistics(mesh, "client"))
    answer = report(wire.ReportRequest.FromString(Reports("run").next(increments, 1.0)))
    called = ("v1", GRPC)
    result = {
        row.kind: figures for row, figures in answer.rows if (row.called.service, row.called.port) == called
    }
    assert {kind: (item.requests, item.failures) for kind, item in result.items()} == {
        Kind.EDGE: (3, 2),
        Kind.BACKEND: (3, 2),
    }
    assert result[Kind.BACKEND].by_class[4] == 1


async def test_failed_grpc_calls_behind_a_split_are_counted_for_the_backend_only(mesh: PolicyMesh) -> None:
    """Envoy counts by cluster, which is the backend's, so the number for the edge to the apex is unknown."""
    await mesh.enforce(*OPEN, split("s", "root", {"v1": 0, "v2": 100}))
    before = await counts(mesh, "client", BEHIND, "backend_service", port=GRPC)
    at_edge = await counts(mesh, "client", FAILED, *EDGE, port=GRPC)
    assert await say(mesh, "root", "Missing") == [grpc.StatusCode.UNIMPLEMENTED]

    async def is_told() -> bool:
        grown = await counts(mesh, "client", BEHIND, "backend_service", port=GRPC) - before
        return grown == {("v2",): 1}

    await until(is_told)
    assert await counts(mesh, "client", FAILED, *EDGE, port=GRPC) == at_edge


async def test_routes_of_a_service_are_counted_separately(mesh: PolicyMesh) -> None:
    """The objects that distinguish requests name the routes: a split, a rule's match, and the rest."""
    books, slow = routes("books", path("/status/50.")), routes("slow", path("/slow"))
    rule = {"matches": [http("slow")], "timeout": {"request": "5s"}}
    await mesh.enforce(
        *OPEN,
        books,
        slow,
        split("canary", "root", {"v2": 100}, "books"),
        split("all", "root", {"v1": 100}),
        route_policy("rules", "root", rule),
    )
    labels = ("destination_service", "destination_port", "route", "status_class")
    before = await counts(mesh, "client", ROUTES, *labels)
    for asked, status in (("/status/503", 503), ("/slow", 200), ("/slow", 200), ("/other", 200)):
        assert (await mesh.get("client", "root", asked)).status == status

    async def are_told() -> bool:
        grown = dict(await counts(mesh, "client", ROUTES, *labels) - before)
        return grown == {
            ("root", "80", "shop/canary/m0", "5xx"): 1,
            ("root", "80", "shop/all+shop/rules/m0", "2xx"): 2,
            ("root", "80", "shop/all", "2xx"): 1,
        }

    await until(are_told)
