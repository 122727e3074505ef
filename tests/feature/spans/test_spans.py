"""Tests of traces of changes at an OTLP collector over gRPC, from the file's event to the last ACK."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import grpc.aio
import pytest
from structlog.testing import capture_logs

from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.admin.metrics.registry import Metrics
from meshwright.admin.spans.export import QUEUE, SpanExport, collector_tls
from meshwright.admin.spans.span import Kind, Span
from meshwright.controller.app import run, utc_now
from meshwright.controller.errors import StartupError
from meshwright.controller.settings.settings import load
from meshwright.delivery.history.open_waves import OpenWaves
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain
from protos.opentelemetry.proto.common.v1 import common_pb2
from protos.opentelemetry.proto.trace.v1 import trace_pb2
from tests.e2e.policy.servers import OtlpCollector
from tests.feature.identity.conftest import Server
from tests.feature.rejection.conftest import WORDS, Join
from tests.meshes import texts
from tests.tools.deadline import until
from tests.tools.own_authority import own_authority
from tools.ports import free_port
from xds.stream_status import Variant

Serve = Callable[..., Awaitable[Server]]
Attributes = dict[str, str | int | list[str]]
SECONDS = 60.0
ROUTE = "rds-outbound.shop/shop|80"


def _workload(name: str, app: str, address: str) -> str:
    more = f"service: {app}, ports: [{{port: 18080}}]"
    return texts.workload(name, address, app=app, account=app, spec=more)


DOCUMENTS = (
    texts.PERMISSIVE,
    *(texts.service(name, texts.port(80, 18080)) for name in ("buyer", "shop", "shop-v1")),
    _workload("one", "buyer", "10.0.0.1"),
    _workload("two", "buyer", "10.0.0.2"),
    _workload("v1", "shop-v1", "10.0.0.3"),
)


def _split(name: str) -> str:
    return texts.split(name, "shop", ("shop-v1", 1))


@pytest.fixture
async def ends() -> AsyncIterator[AsyncExitStack]:
    """A stack of contexts that end with the test."""
    async with AsyncExitStack() as stack:
        yield stack


def _said(span: trace_pb2.Span) -> Attributes:
    return {attribute.key: _value(attribute.value) for attribute in span.attributes}


def _value(value: common_pb2.AnyValue) -> str | int | list[str]:
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "int_value":
            return value.int_value
        case _:
            return [any_value.string_value for any_value in value.array_value.values]


def _change(collector: OtlpCollector, cause: str) -> list[trace_pb2.Span]:
    """Return the trace of the change whose cause has this prefix, root first, or an empty list."""
    spans = [span for _, span in collector.spans]
    roots = [span for span in spans if not span.parent_span_id]
    caused = [span for span in roots if any(item.startswith(cause) for item in _causes(span))]
    return [item for item in spans if caused and item.trace_id == caused[0].trace_id]


def _causes(root: trace_pb2.Span) -> list[str]:
    result = _said(root)["meshwright.causes"]
    return result if isinstance(result, list) else []


def _edited(collector: OtlpCollector, name: str) -> list[trace_pb2.Span]:
    return _change(collector, f"TrafficSplit shop/{name} added")


@pytest.mark.parametrize("variant", list(Variant))
async def test_change_is_exported_as_a_trace_and_a_rejection_as_an_error(
    serve: Serve, join: Join, ends: AsyncExitStack, variant: Variant
) -> None:
    """The trace has the computation and a push for each proxy.

    A NACK is an error span, and its replacement a trace.
    """
    collector = await OtlpCollector.start(ends)
    at = f"127.0.0.1:{collector.port}"
    server = await serve(
        *DOCUMENTS, trace_collector=at, endpoint_admission="off"
    )  # so that admission causes no other wave
    picky = join(server, "one.buyer.shop", variant, lambda value: b"poison" in value)
    easy = join(server, "two.buyer.shop", variant)
    await until(lambda: picky.routes(ROUTE) and easy.routes(ROUTE))

    server.write(*DOCUMENTS, _split("good"))
    await until(lambda: _edited(collector, "good"))
    root, *steps = _edited(collector, "good")
    pushes = [step for step in steps if step.kind == trace_pb2.Span.SPAN_KIND_CLIENT]
    answer = _said(root)
    assert [step.name for step in steps if step not in pushes] == ["gather", "compute", "publish"]
    assert {_said(span)["meshwright.proxy"] for span in pushes} == {picky.name, easy.name}
    assert "push route" in {span.name for span in pushes}
    assert {_said(span)["meshwright.answer"] for span in pushes} == {"ack"}
    assert (answer["meshwright.proxies.touched"], answer["meshwright.proxies.reached"]) == (2, 2)
    assert (answer["meshwright.pushes"], answer["meshwright.ended"]) == (len(pushes), "answered")
    assert root.status.code == trace_pb2.Status.STATUS_CODE_UNSET
    assert {step.parent_span_id for step in steps} == {root.span_id}
    gather, compute, publish, *_ = steps
    times = (root.start_time_unix_nano, compute.start_time_unix_nano, publish.start_time_unix_nano)
    assert times == (
        gather.start_time_unix_nano,
        gather.end_time_unix_nano,
        compute.end_time_unix_nano,
    )
    assert all(publish.start_time_unix_nano <= span.start_time_unix_nano for span in pushes)
    assert root.end_time_unix_nano == max(step.end_time_unix_nano for step in steps)
    (teller,) = {item["service.name"] for item, _ in collector.spans}
    assert teller == "meshwright"

    server.write(*DOCUMENTS, _split("poison"))
    await until(lambda: _edited(collector, "poison"))
    root, *steps = _edited(collector, "poison")
    (wrong,) = (step for step in steps if step.status.code == trace_pb2.Status.STATUS_CODE_ERROR)
    assert (wrong.name, wrong.status.message) == ("push route", WORDS)
    assert (
        _said(wrong).items()
        >= {
            "meshwright.proxy": picky.name,
            "meshwright.answer": "nack",
            "meshwright.rejection.code": 13,
            "error.type": "nack",
        }.items()
    )
    assert root.status.code == trace_pb2.Status.STATUS_CODE_ERROR
    stands_in = f"rejection {picky.name} changed"
    await until(lambda: _change(collector, stands_in))
    (push,) = (span for span in _change(collector, stands_in) if span.name == "push route")
    assert _said(push)["meshwright.proxy"] == picky.name


async def test_server_does_not_wait_for_an_absent_collector(
    serve: Serve, join: Join, ends: AsyncExitStack
) -> None:
    """The server starts and serves, and the collector gets the spans when it listens."""
    port = free_port("127.0.0.1")
    server = await serve(*DOCUMENTS, trace_collector=f"127.0.0.1:{port}")
    easy = join(server, "two.buyer.shop", Variant.DELTA)
    await until(lambda: easy.routes(ROUTE))
    server.write(*DOCUMENTS, _split("good"))
    await until(lambda: b"split:shop/good" in easy.routes(ROUTE))
    collector = await OtlpCollector.start(ends, port)
    await until(lambda: _edited(collector, "good"))
    assert await server.counted("meshwright_spans_exported_total", len(collector.spans))
    assert await server.metric('meshwright_spans_dropped_total{reason="queue-full"}') == 0


async def test_collector_is_verified_with_the_configured_ca(
    serve: Serve, join: Join, ends: AsyncExitStack, tmp_path: Path
) -> None:
    """A collector with a certificate of another CA gets no spans."""
    authority = own_authority(tmp_path / "other", TrustDomain("cluster.local"), utc_now())
    shown = ads_server_certificate(authority, PairFiles(tmp_path / "other"), utc_now())
    (tmp_path / "ca.pem").write_bytes(authority.trust_bundle())
    tls = grpc.ssl_server_credentials([(shown.key.reveal(), shown.chain_pem)])
    collector = await OtlpCollector.start(ends, tls=tls)
    settings = {"trace_collector": f"127.0.0.1:{collector.port}", "trace_collector_tls": True}
    server = await serve(*DOCUMENTS, **settings, trace_collector_ca=tmp_path / "ca.pem")
    easy = join(server, "two.buyer.shop", Variant.DELTA)
    await until(lambda: easy.routes(ROUTE))
    server.write(*DOCUMENTS, _split("good"))
    await until(lambda: _edited(collector, "good"))

    other = await OtlpCollector.start(ends, tls=tls)
    with capture_logs() as answer:
        trusted = collector_tls(tmp_path / "state" / "ca" / "ca.pem")
        export = SpanExport(OpenWaves(), HostPort("127.0.0.1", other.port), trusted, Metrics(), utc_now)
        _run(ends, export)
        export.offer((SPAN,))
        await until(lambda: [item for item in answer if item["event"] == "span export failed"])
    assert other.spans == []


async def test_unreadable_collector_ca_prevents_the_start(tmp_path: Path) -> None:
    """The error names the file and its setting."""
    ca, (mesh, state) = tmp_path / "none.pem", (tmp_path / item for item in ("mesh", "state"))
    mesh.mkdir()
    flags: dict[str, object] = {"mesh": mesh, "state": state, "trace_collector_ca": ca}
    flags |= {"trace_collector": "127.0.0.1:4317", "trace_collector_tls": True}
    with pytest.raises(StartupError, match=rf"^trace_collector_ca: {ca} cannot be read: No such file"):
        await run(load(flags), asyncio.Event())


async def test_server_without_a_collector_records_no_spans(
    serve: Serve, join: Join, ends: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenTelemetry's own environment variables have no effect."""
    collector = await OtlpCollector.start(ends)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")
    server = await serve(*DOCUMENTS)
    easy = join(server, "two.buyer.shop", Variant.DELTA)
    server.write(*DOCUMENTS, _split("good"))
    await until(lambda: b"split:shop/good" in easy.routes(ROUTE))
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert "mesh loop" in names
    assert names.isdisjoint({"spans", "span collector"})
    assert collector.spans == []


SPAN = Span(b"t" * 16, b"i" * 8, b"", "change", Kind.INTERNAL, 1, 2, {})


def _counted(metrics: Metrics, line: str) -> float:
    lines = metrics.text().decode().splitlines()
    return next((float(item.rpartition(" ")[2]) for item in lines if item.startswith(line + " ")), 0.0)


@pytest.fixture
def metrics() -> Metrics:
    """Separate metrics for the test."""
    return Metrics()


def _exporting(ends: AsyncExitStack, port: int, metrics: Metrics) -> SpanExport:
    """Return an export to a port that runs until the test ends."""
    export = SpanExport(OpenWaves(), HostPort("127.0.0.1", port), None, metrics, utc_now)
    _run(ends, export)
    return export


def _run(ends: AsyncExitStack, export: SpanExport) -> None:
    tasks = [asyncio.create_task(work, name=name) for name, work in export.works(lambda now: now)]

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    ends.push_async_callback(end)


async def test_trace_that_does_not_fit_into_the_queue_is_dropped_and_counted(
    ends: AsyncExitStack, metrics: Metrics
) -> None:
    """A trace is dropped whole. Queued traces are exported when the collector listens."""
    port = free_port("127.0.0.1")
    export = _exporting(ends, port, metrics)
    for _ in range(QUEUE // 4):
        export.offer((SPAN,) * 4)
    export.offer((SPAN,) * 3)
    assert _counted(metrics, 'meshwright_spans_dropped_total{reason="queue-full"}') == 3
    collector = await OtlpCollector.start(ends, port)
    await until(lambda: len(collector.spans) == QUEUE)
    await until(lambda: _counted(metrics, "meshwright_spans_exported_total") == QUEUE)
    export.offer((SPAN,))
    await until(lambda: len(collector.spans) == QUEUE + 1)


async def test_spans_that_a_collector_rejects_are_dropped_and_counted(
    ends: AsyncExitStack, metrics: Metrics
) -> None:
    """The server at the port answers UNIMPLEMENTED."""
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    ends.push_async_callback(server.stop, None)
    export = _exporting(ends, port, metrics)
    export.offer((SPAN,) * 5)
    await until(lambda: _counted(metrics, 'meshwright_spans_dropped_total{reason="rejected"}') == 5)
    assert _counted(metrics, "meshwright_spans_exported_total") == 0
