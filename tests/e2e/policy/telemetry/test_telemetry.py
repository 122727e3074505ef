"""Tests of Telemetry with real Envoys: logged requests, formats, and collectors."""

import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.e2e.policy.applications import ECHO
from tests.e2e.policy.policies import (
    ALL,
    EVERYTHING,
    Document,
    config,
    extension_service,
    http,
    path,
    routes,
    target,
    telemetry,
)
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.servers import Collector, LogCollector, pairs
from tests.tools.deadline import until
from tests.unit.specs.osm.test_telemetry import SIDECARS

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

OPEN = (
    *EVERYTHING,
    target("one", "shop/v1", ("shop/client",), *ALL),
    target("two", "shop/v2", ("shop/client",), *ALL),
)
V1 = {"selector": {"v1": "yes"}}


async def enforced(mesh: PolicyMesh, *policy: Document) -> None:
    """Enforce a policy and end all earlier connections, because a log belongs to a listener."""
    await mesh.enforce(*OPEN, *policy)
    for to in ("v1", "v2") * 3:  # the first announces the connection's end; the next may be in flight
        await mesh.get("client", to, "/before")


async def lines(file: Path, last: str) -> list[str]:
    """Return the lines of a file once it contains a text; Envoy writes its log in intervals."""

    async def written() -> bool:
        return file.exists() and last in file.read_text()

    await until(written)
    return file.read_text().splitlines()


def at(file: Path, **log: object) -> Document:
    """Return a Telemetry that logs only to a file."""
    return telemetry("logs", **V1, accessLog={"stdout": False, "file": str(file), **log})


async def test_access_log_of_one_workload_has_its_own_text_or_json_format(
    mesh: PolicyMesh, tmp_path: Path
) -> None:
    """Each request to v1, and no other, is a line of text. In JSON, values are escaped."""
    file = tmp_path / "text.log"
    await enforced(mesh, at(file, format='%REQ(:method)% %REQ(:path):6% "%RESPONSE_CODE%" 100%%'))
    await mesh.get("client", "v1", "/one-two-three")
    await mesh.get("client", "v2", "/other")
    await mesh.get("client", "v1", "/last", method="POST")
    assert (await lines(file, "/last"))[-2:] == ['GET /one-t "200" 100%', 'POST /last "200" 100%']
    file = tmp_path / "json.log"
    form = '{"path": "%REQ(:path)%", "of": {"agent": "%REQ(user-agent)%", "status": "%RESPONSE_CODE%"}}'
    await enforced(mesh, at(file, format=form))
    await mesh.get("client", "v1", "/seen", headers={"user-agent": 'a "quoted" one'})
    (line,) = [item for item in await lines(file, "/seen") if "/seen" in item]
    assert json.loads(line) == {"path": "/seen", "of": {"agent": 'a "quoted" one', "status": 200}}


async def test_access_log_filter_by_status_logs_only_failed_requests(
    mesh: PolicyMesh, tmp_path: Path
) -> None:
    """Requests below the minimum status are not logged."""
    file = tmp_path / "wrong.log"
    rules = (routes("g", path("/fine")), target("one", "shop/v1", ("shop/client",), http("g")))
    await mesh.enforce(*rules, at(file, format="%REQ(:path)% %RESPONSE_CODE%", filter={"minStatus": 400}))
    for item in ("/before", "/before", "/before", "/fine", "/denied", "/fine"):
        await mesh.get("client", "v1", item)
    assert (await lines(file, "/denied"))[-1] == "/denied 403"
    assert "/fine" not in file.read_text()


async def test_access_log_sampling_of_zero_logs_no_request(mesh: PolicyMesh, tmp_path: Path) -> None:
    """With a sampling of 0 no request is logged, and with 100 every request is."""
    file = tmp_path / "sampled.log"
    await enforced(mesh, at(file, format="%REQ(:path)%", sampling=0))
    await mesh.get("client", "v1", "/none")
    await enforced(mesh, at(file, format="%REQ(:path)%", sampling=100))
    await mesh.get("client", "v1", "/all")
    assert "/all" in await lines(file, "/all")
    assert "/none" not in file.read_text()


async def test_open_telemetry_collector_gets_records_of_requests_and_connections(mesh: PolicyMesh) -> None:
    """Records have the configured attributes, the sending proxy's resource, and a structured or text body."""
    async with AsyncExitStack() as ends:
        collector = await LogCollector.start(ends)
        exported = {
            "extensionService": {"namespace": "shop", "name": "collector"},
            "attributes": {"caller": "%DOWNSTREAM_PEER_URI_SAN%", "of": "tests"},
        }
        answer = {"stdout": False, "openTelemetry": exported}
        service = extension_service("collector", collector.port)
        await enforced(mesh, service, telemetry("logs", **V1, accessLog=answer))
        await mesh.get("client", "v1", "/told")
        assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"

        def found() -> list[dict[str, object]]:
            return [pairs(log_record.body.kvlist_value.values) for _, log_record in collector.records]

        async def told() -> bool:
            paths = {item.get("path") for item in found()}
            return "/told" in paths and None in paths

        await until(told)
        labels, record = next(
            item
            for item in collector.records
            if pairs(item[1].body.kvlist_value.values).get("path") == "/told"
        )
        assert labels["cluster_name"] == "v1.shop"
        assert pairs(record.attributes) == {
            "caller": "spiffe://cluster.local/ns/shop/sa/client",
            "of": "tests",
        }
        body = pairs(record.body.kvlist_value.values)
        assert (body["method"], body["response_code"]) == ("GET", "200")
        form = telemetry("logs", **V1, accessLog={**answer, "format": "%REQ(:path)% of text"})
        await enforced(mesh, service, form)
        await mesh.get("client", "v1", "/text")

        async def as_text() -> bool:
            return any(log_record.body.string_value == "/text of text" for _, log_record in collector.records)

        await until(as_text)
        await enforced(mesh)


async def test_every_accepted_format_operator_is_accepted_by_envoy(mesh: PolicyMesh) -> None:
    """A format with every operator that the reader accepts leads to no rejected listener."""
    form = json.dumps({str(number): item for number, item in enumerate(SIDECARS)})
    await enforced(mesh, at(Path("/dev/null"), format=form))
    assert await mesh.live.stat("v1", "update_rejected") == 0
    await enforced(mesh)


async def test_tracing_sampling_of_a_workload_overrides_that_of_the_mesh(mesh: PolicyMesh) -> None:
    """With a sampling of 0, v1 reports no spans. Without it, the mesh's sampling applies."""
    async with AsyncExitStack() as ends:
        collector = await Collector.start(ends)
        tracing = {"enable": True, "address": "127.0.0.1", "port": collector.port, "endpoint": "/told"}
        mesh_wide = config(observability={"tracing": tracing})
        await enforced(mesh, mesh_wide, telemetry("less", tracing={"sampling": 0}))
        await mesh.get("client", "v1", "/untraced")
        await enforced(mesh, mesh_wide)
        await mesh.get("client", "v1", "/traced")

        async def traced() -> bool:
            return any("/traced" in str(span) for span in collector.spans)

        await until(traced)
        assert not any("/untraced" in str(span) for span in collector.spans)
        await enforced(mesh)
