"""Tests with OpenTelemetry's own collector: logs and traces of sidecars, traces of the control plane.

They need no cluster; they are in this folder because Go builds the collector.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.e2e.policy.policies import ALL, EVERYTHING, config, extension_service, target, telemetry
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.feature.identity.conftest import serving as served
from tests.feature.rejection.conftest import joining
from tests.meshes import texts
from tests.tools.deadline import until
from tools.ports import free_port
from tools.real_parts.building import program
from tools.real_parts.parts import COLLECTOR
from tools.real_parts.processes import Program, running
from xds.protocol.resources.resource import ROUTE
from xds.stream_status import Variant

pytestmark = pytest.mark.usefixtures("collector_part")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@dataclass(frozen=True, slots=True)
class Collector:
    """A running collector: its port for OTLP by gRPC, and the file of its output."""

    port: int
    log: Path

    def has(self, *words: str) -> bool:
        """Return whether one received item has all of these words."""
        return any(
            all(word in item for word in words) for item in self.log.read_text("utf-8").split("Resource")
        )


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    """Return a collector that writes all received data to a file."""
    port, own = free_port("127.0.0.1"), free_port("127.0.0.1")
    pipeline = {"receivers": ["otlp"], "exporters": ["debug"]}
    reader = {"pull": {"exporter": {"prometheus": {"host": "127.0.0.1", "port": own}}}}
    answer = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{port}"}}}},
        "exporters": {"debug": {"verbosity": "detailed"}},
        "service": {
            "telemetry": {"metrics": {"readers": [reader]}},
            "pipelines": {"traces": pipeline, "logs": pipeline},
        },
    }
    file = tmp_path / "collector.yaml"
    file.write_text(yaml.safe_dump(answer))
    words = ("--config", f"file:{file}")
    started = Program(program(COLLECTOR), words, tmp_path, f"http://127.0.0.1:{own}/metrics")
    with running(started):
        yield Collector(port, started.log_file)


@pytest.fixture
async def ends() -> AsyncIterator[AsyncExitStack]:
    """Return a stack that ends with the test."""
    async with AsyncExitStack() as stack:
        yield stack


async def test_collector_accepts_logs_and_spans_of_sidecars(
    collector: Collector, ends: AsyncExitStack, tmp_path: Path
) -> None:
    """A request's log record and both spans of its trace arrive."""
    mesh = await PolicyMesh.start(tmp_path / "mesh", ends)
    exported = {"extensionService": {"namespace": "shop", "name": "collector"}}
    tracing = {"enable": True, "address": "127.0.0.1", "port": collector.port, "protocol": "OTLP"}
    await mesh.enforce(
        *EVERYTHING,
        target("one", "shop/v1", ("shop/client",), *ALL),
        config(observability={"tracing": tracing}),
        extension_service("collector", collector.port),
        telemetry("logs", accessLog={"stdout": False, "openTelemetry": exported}),
    )
    fields = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    assert (await mesh.get("client", "v1", "/told", headers=fields)).status == 200

    async def has_come() -> bool:
        ends = (("v1.shop", "Server"), ("client.shop", "Client"))
        spans = (collector.has(f"service.name: Str({who})", TRACE, kind) for who, kind in ends)
        return collector.has("cluster_name: Str(v1.shop)", '"path":"/told"') and all(spans)

    await until(has_come)


async def test_collector_accepts_spans_of_the_control_plane(collector: Collector, tmp_path: Path) -> None:
    """A change is a trace that includes the ACK of the affected proxy."""
    shop = texts.workload("one", "10.0.0.1", app="shop", account="shop", spec="service: shop")
    documents = (texts.PERMISSIVE, texts.service("shop", texts.port(80, 18080)), shop)
    async with served(tmp_path) as start, joining() as join:
        server = await start(*documents, trace_collector=f"127.0.0.1:{collector.port}")
        sidecar = join(server, "one.shop.shop", Variant.DELTA)
        # A sidecar that comes after the change has it in its first responses, which are no push.
        await until(lambda: any(type_url == ROUTE for type_url, _ in sidecar.held))
        server.write(*documents, texts.service("other", texts.port(81, 18081)))

        async def has_come() -> bool:
            return collector.has("service.name: Str(meshwright)", "Service shop/other added", "push", "ack")

        await until(has_come)
