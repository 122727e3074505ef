"""Tests of the metrics page with two real Envoys: the edge between them, and the application's metrics."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.agent.scenes import CLIENT, PORT, Agent, Scene, answered, get
from tests.tools.deadline import until
from tools.ports import free_port

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(120)]
CALLS = 7
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def test_metrics_describe_an_edge_at_its_caller_and_its_server(
    scene: Scene, ends: AsyncExitStack
) -> None:
    """The page has source, destination, number, success, time and bytes of requests.

    It also has the application's metrics, and fewer than 100 series.
    """
    application = await _application(ends)
    alice = await scene.agent("alice-uuid", "--application-metrics", application)
    shop = await scene.agent("shop-uuid", "--application-port", str(PORT))
    await until(answered)
    before = _requests(await _read(alice))
    for _ in range(CALLS):
        assert (await get(f"http://{CLIENT}:{PORT}/"))[0] == 200
    await until(lambda: _timed(alice))

    source = {"source_namespace": "default", "source_service": "alice", "source_service_account": "alice"}
    to = {"destination_namespace": "default", "destination_service": "shop"}
    outbound = {"direction": "outbound", **source, **to, "destination_port": "80", "protocol": "http"}
    result = await _read(alice)
    assert _requests(result) == before + CALLS
    assert result[_key("meshwright_edge_requests_total", outbound, status_class="2xx")] >= CALLS
    assert 0 < result[_key("meshwright_edge_request_duration_seconds_sum", outbound)] < 60
    assert result[_key("meshwright_edge_received_bytes_total", outbound)] > CALLS * len("ok\n")
    backend = {**source, "backend_namespace": "default", "backend_service": "shop", "backend_port": str(PORT)}
    assert result[_key("meshwright_backend_requests_total", backend, status_class="2xx")] >= CALLS
    assert result[_key("orders_total", {})] == 5

    here = {"direction": "inbound", **to, "destination_service_account": "shop"}
    inbound = {**here, "destination_port": str(PORT), "protocol": "http"}
    fields = await _read(shop)
    assert fields[_key("meshwright_edge_requests_total", inbound, status_class="2xx")] >= CALLS

    names = {name for name, _ in result}
    assert {"envoy_server_live", "envoy_control_plane_connected_state", "meshwright_agent_envoys"} <= names
    assert not [name for name in names if name.startswith(("envoy_cluster_default", "envoy_http"))]
    assert len(result) < 100


async def test_all_envoy_metrics_are_served_only_on_their_own_path(scene: Scene) -> None:
    """`/stats/prometheus` has all of Envoy's metrics under Envoy's names; `/metrics` has only a few."""
    alice = await scene.agent("alice-uuid")
    assert "envoy_server_initialization_time_ms_count" in (await get(f"{alice.status}/stats/prometheus"))[1]
    assert "envoy_server_initialization_time_ms_count" not in (await get(f"{alice.status}/metrics"))[1]


async def _application(ends: AsyncExitStack) -> str:
    """Serve an application's metrics in OpenMetrics; return the address."""

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(
            text='# TYPE orders counter\norders_total 5 # {trace_id="a"} 1\norders_created 1.5e9\n# EOF\n'
        )

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    ends.push_async_callback(runner.cleanup)
    port = free_port("127.0.0.1")
    await web.TCPSite(runner, "127.0.0.1", port).start()
    return f"http://127.0.0.1:{port}/metrics"


async def _read(agent: Agent) -> Series:
    """Return the page as parsed by Prometheus' own parser; each series is unique."""
    status, text = await get(f"{agent.status}/metrics")
    assert status == 200
    assert "_created" not in text
    families = await asyncio.to_thread(lambda: list(text_string_to_metric_families(text)))
    samples = [sample for family in families for sample in family.samples]
    result = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(result) == len(samples)
    return result


async def _timed(agent: Agent) -> bool:
    """Return whether Envoy has merged its histograms, which it does every five seconds."""
    counts = [
        value
        for (name, labels), value in (await _read(agent)).items()
        if name == "meshwright_edge_request_duration_seconds_count" and ("direction", "outbound") in labels
    ]
    return sum(counts) >= CALLS


def _requests(result: Series) -> float:
    return sum(
        value
        for (name, labels), value in result.items()
        if name == "meshwright_edge_requests_total" and ("direction", "outbound") in labels
    )


def _key(name: str, labels: dict[str, str], **more: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset({**labels, **more}.items())
