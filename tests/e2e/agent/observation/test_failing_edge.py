"""Test of a failing edge: `meshwright stat`, the topology page and the alert report it."""

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from demo.plane import COMMAND
from meshwright.mesh.workload import Capture, Transparent
from meshwright.sidecars.layout import STATUS_PORT
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.mesh_of_machines import ADDRESSES, CALLED_AT, V4, Meshed, policy
from tests.e2e.agent.scenes import get_from
from tests.golden.envoys import Place
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
RULES = Path(__file__).parents[4] / "deploy" / "prometheus"
PROMETHEUS = "127.0.0.1:9090"
SHORT = (("[5m]", "[20s]"), ("[1h]", "[30s]"), ("for: 2m", "for: 1s"), ("interval: 30s", "interval: 1s"))
"""Our rules, but for their windows and for how long they wait: nobody waits that long for a test."""
BAD = """
---
apiVersion: policy.meshwright.dev/v1alpha1
kind: RoutePolicy
metadata: {name: bad, namespace: default}
spec: {service: shop, rules: [{fault: {abort: {status: 503, percent: 100}}}]}
"""


@asynccontextmanager
async def scraping(meshed: Meshed, prometheus: str) -> AsyncIterator[None]:
    """Run a Prometheus on the switch that scrapes agents and control plane as in docs/operate/metrics.md."""
    folder = meshed.state / "prometheus"
    folder.mkdir()
    for name in ("recording.yaml", "alerts.yaml"):
        text = (RULES / name).read_text()
        for before, after in SHORT:
            text = text.replace(before, after)
        (folder / name).write_text(text)
    agents = [f"{address[V4]}:{STATUS_PORT}" for address in ADDRESSES.values()]
    jobs = {"meshwright-agents": agents, "meshwright": [meshed.plane.http]}
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / item) for item in ("recording.yaml", "alerts.yaml")],
        "scrape_configs": [
            {"job_name": name, "static_configs": [{"targets": targets}]} for name, targets in jobs.items()
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    command = [*meshed.machines["switch"].enter, prometheus, f"--config.file={folder / 'prometheus.yml'}"]
    command += [f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={PROMETHEUS}"]
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def test_failing_edge_is_reported_by_stat_topology_and_alert(
    envoy: str, tmp_path: Path, ends: AsyncExitStack
) -> None:
    """Without failures, no alert fires.

    When a fault is injected, `stat`, the topology and the alert name the edge, and the alert ends when the
    fault is removed.
    """
    prometheus = shutil.which("prometheus")
    if prometheus is None and os.environ.get("MESHWRIGHT_PROMETHEUS") != "required":
        pytest.skip("there is no Prometheus: `make system` installs one")
    assert prometheus is not None, "Debian's package prometheus is required here"
    tmp_path.chmod(0o755)
    meshed = await Meshed.start(
        tmp_path, V4, Transparent(Capture.REDIRECT, ipv6=True), envoy, ends, joining=True
    )
    statuses: list[int] = []

    async def calling() -> None:
        while True:
            statuses.append((await meshed.get("alice", f"http://{CALLED_AT[V4]}/books"))[0])
            await asyncio.sleep(0.05)

    async def asked(path: str) -> Any:
        place = Place(open_socket=partial(meshed.machines["switch"].socket, V4, 0))
        status, text = await get_from(place, f"http://{PROMETHEUS}/api/v1{path}")
        assert status == 200, text
        return json.loads(text)["data"]

    async def edges() -> list[list[str]]:
        return [item for item in await stat() if item[:2] == ["default/alice", "default/shop:80"]]

    async def is_well() -> bool:
        with contextlib.suppress(OSError, AssertionError, ValueError):  # not there yet
            targets = (await asked("/targets"))["activeTargets"]
            (result,) = await successes()
            well = {target["health"] for target in targets} == {"up"} and float(result["value"][1]) == 1.0
            return well and [item[3] for item in await edges()] == ["100.00%"]
        return False

    async def successes() -> list[Mapping[str, Any]]:
        query = 'meshwright:edge_success:ratio5m{source_service="alice",destination_service="shop"}'
        completed_process: list[Mapping[str, Any]] = (await asked(f"/query?query={query}"))["result"]
        return completed_process

    async def firing() -> set[tuple[str, ...]]:
        alerts = (await asked("/alerts"))["alerts"]
        names = ("alertname", "source_service", "destination_service")
        return {
            tuple(alert["labels"].get(name, "") for name in names)
            for alert in alerts
            if alert["state"] == "firing" and "Edge" in alert["labels"]["alertname"]
        }

    async def stat() -> list[list[str]]:
        state = meshed.state / "control"
        printed = await asyncio.to_thread(
            meshed.machines["switch"].run, str(COMMAND), "stat", "edges", "--state", str(state)
        )
        return [line.split() for line in printed.stdout.splitlines()[1:]]

    async def is_found() -> bool:
        (edge,) = await edges()
        outcome = await meshed.ask("/api/v1/topology?service=default/shop")
        (shop,) = [node for node in outcome["nodes"] if node["id"] == "default/shop"]
        bad = float(edge[3].rstrip("%")) < 90 and shop["verdict"] == "failed"
        return bad and await firing() == {("MeshwrightEdgeFailing", "alice", "shop")}

    task = asyncio.create_task(calling())
    try:
        async with scraping(meshed, prometheus):
            await until(is_well, 90)
            assert await firing() == set()
            assert set(statuses) == {200}
            meshed.apply(policy("alice", "shop") + BAD)
            await until(is_found, 120)
            assert statuses[-1] == 503
            meshed.apply(policy("alice", "shop"))

            async def is_well_again() -> bool:
                return await firing() == set() and statuses[-1] == 200

            await until(is_well_again, 120)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
