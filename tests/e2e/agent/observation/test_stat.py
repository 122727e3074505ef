"""Test of `meshwright stat` with the counters of enrolled agents, real Envoys and real calls."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from demo.plane import COMMAND
from meshwright.mesh.workload import Capture, Transparent
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.mesh_of_machines import CALLED_AT, V4, Meshed
from tests.e2e.policy.applications import HTTP
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
CALLS = 7


async def test_stat_counts_each_call_once_at_caller_and_server(
    envoy: str, tmp_path: Path, ends: AsyncExitStack
) -> None:
    """The rows equal Envoy's own counters at both ends, and a refused call is no failure.

    A restarted control plane counts only later calls.
    """
    tmp_path.chmod(0o755)
    how = Transparent(Capture.REDIRECT, ipv6=True)
    meshed = await Meshed.start(tmp_path, V4, how, envoy, ends, joining=True)

    async def rows(of: str) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = (
            await meshed.ask(f"/api/v1/stat/{of}?window=3600&service=default/shop")
        )["rows"]
        return result

    async def counted(name: str, prefix: str) -> tuple[int, int]:
        """Return Envoy's own counters: requests answered with 2xx and with 4xx."""
        stats = [f"^http.{prefix}.downstream_rq_{item}xx$" for item in (2, 4)]
        well, refused = [await meshed.stat(name, stat.replace("|", r"\|")) for stat in stats]
        return well, refused

    for _ in range(CALLS):
        assert (await meshed.books("alice", V4))[0] == 200
    assert (await meshed.get("alice", f"http://{CALLED_AT[V4]}/cellar"))[0] == 403

    def classes(row: dict[str, Any]) -> tuple[int, int]:
        return row["by_class"]["2xx"], row["by_class"]["4xx"]

    async def alice_calls() -> dict[str, Any]:
        (outcome,) = (item for item in await rows("edges") if item["source"]["service"] == "alice")
        return outcome

    async def all_is_told() -> bool:
        edges = {(item["source"] or {}).get("service"): classes(item) for item in await rows("edges")}
        services = [classes(item) for item in await rows("services") if item["protocol"] == "http"]
        outbound = await counted("alice", "rds-outbound.default/shop|80")
        inbound = await counted("shop", f"rds-inbound.{HTTP}")
        assert edges.get("alice", (0, 0)) <= outbound
        assert outbound >= (CALLS, 0)
        return (edges.get("alice"), services) == (outbound, [inbound])

    await until(all_is_told)
    assert classes(await alice_calls())[1] == 1

    async def has_times() -> bool:
        # Envoy takes over its workers' histograms every five seconds, its counters at once.
        return (await alice_calls())["p99_ms"] is not None

    await until(has_times)
    edge = await alice_calls()
    assert (edge["destination"], edge["success"]) == (
        {"namespace": "default", "service": "shop", "port": 80},
        1.0,
    )
    assert 0 < edge["p50_ms"] <= edge["p99_ms"] <= 10_000
    completed_process = await meshed.ask("/api/v1/topology?window=3600")
    calls = {(item["source"], item["destination"]): item for item in completed_process["edges"]}
    to_shop = calls["default/alice", "default/shop"]
    assert (to_shop["allowed"], to_shop["configured"], to_shop["mtls"]) == (True, True, True)
    state = meshed.state / "control"
    printed = await asyncio.to_thread(
        meshed.machines["switch"].run, str(COMMAND), "stat", "edges", "--state", str(state)
    )
    cells = [line.split() for line in printed.stdout.splitlines()]
    assert ["default/alice", "default/shop:80", "http", "100.00%"] in [cell[:4] for cell in cells]
    # A restarted control plane has no earlier counts, and gets the later ones.
    await meshed.crash()
    await meshed.serve()

    assert (await meshed.books("alice", V4))[0] == 200

    async def is_told_anew() -> bool:
        # The shop's agent may report the call first; that makes a row without alice's.
        return any((item["source"] or {}).get("service") == "alice" for item in await rows("edges"))

    await until(is_told_anew)
    assert classes(await alice_calls()) == (1, 0)
