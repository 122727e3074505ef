"""Test of failed gRPC calls and routes in `meshwright stat`, with real agents, Envoys and calls."""

import asyncio
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from demo.plane import COMMAND
from meshwright.mesh.workload import Capture, Transparent
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.mesh_of_machines import CALLED_AT, V4, Meshed
from tests.e2e.policy.applications import GRPC, HTTP
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
ECHO = "10.96.0.2"
NEW = "default/patience/new"
# Envoy's own counters at the caller.
FAILED = rf"^cluster.default/echo\|{GRPC}.grpc.failure$"
SIDECARS = {item: rf"^vhost.default/shop.route.80\|{item}.upstream_rq_2xx$" for item in (NEW, "rest")}
# Envoy's own counters at the shop, of requests admitted by each match.
ADMITTED = {
    (item, port): rf"^vhost.default/shop.vcluster.{port}\|{item}.upstream_rq_2xx$"
    for item, port in (("default/books/books", HTTP), ("default/calls/echo", GRPC))
}
PROGRAM = (sys.executable, "-m", "tests.e2e.agent.observation.grpc_program")
FURTHER = f"""
apiVersion: v1
kind: Service
metadata: {{name: echo, namespace: default}}
spec:
  clusterIP: {ECHO}
  selector: {{app: shop}}
  ports: [{{name: calls, port: {GRPC}, targetPort: {GRPC}, appProtocol: grpc}}]
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {{name: calls, namespace: default}}
spec: {{matches: [{{name: echo, pathRegex: /test.Echo/.*, methods: [POST]}}]}}
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {{name: calls, namespace: default}}
spec:
  destination: {{kind: ServiceAccount, name: shop, namespace: default}}
  sources: [{{kind: ServiceAccount, name: alice, namespace: default}}]
  rules: [{{kind: HTTPRouteGroup, name: calls}}]
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {{name: shelves, namespace: default}}
spec: {{matches: [{{name: new, pathRegex: /books/new.*, methods: ['*']}}]}}
---
apiVersion: policy.meshwright.dev/v1alpha1
kind: RoutePolicy
metadata: {{name: patience, namespace: default}}
spec:
  service: shop
  rules: [{{matches: [{{kind: HTTPRouteGroup, name: shelves}}], timeout: {{request: 5s}}}}]
"""
BY_ROUTES = f"""
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: web.v1, namespace: default}}
spec:
  parentRefs: [{{group: "", kind: Service, name: shop, port: 80}}]
  rules:
  - name: new-books
    matches: [{{path: {{value: /books/new}}}}, {{path: {{value: /none}}}}]
    backendRefs: [{{name: shop, port: 80}}]
  - backendRefs: [{{name: shop, port: 80}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {{name: calls, namespace: default}}
spec:
  parentRefs: [{{group: "", kind: Service, name: echo}}]
  rules:
  - matches: [{{method: {{service: test.Echo, method: Say}}}}]
    backendRefs: [{{name: echo, port: {GRPC}}}]
"""
# Envoy's own counters at the caller, by the name of the route's rule.
RULES = {
    (name, service): rf"^vhost.default/{service}.route.{port}\|{name}.upstream_rq_2xx$"
    for name, service, port in (
        ("default/web.v1/new-books", "shop", 80),
        ("default/web.v1/rule-2", "shop", 80),
        ("default/calls/rule-1", "echo", GRPC),
    )
}


async def rows(meshed: Meshed, of: str, to: str) -> list[dict[str, Any]]:
    """Return the control plane's rows for calls to a service of namespace default."""
    result: list[dict[str, Any]] = (await meshed.ask(f"/api/v1/stat/{of}?window=3600&to=default/{to}"))[
        "rows"
    ]
    return result


async def printed(meshed: Meshed, of: str) -> list[list[str]]:
    """Return the words of each line that `meshwright stat` prints for alice's calls."""
    command = (str(COMMAND), "stat", of, "--from", "default/alice", "--window", "1h")
    state = ("--state", str(meshed.state / "control"))
    result = await asyncio.to_thread(meshed.machines["switch"].run, *command, *state)
    return [line.split() for line in result.stdout.splitlines()]


async def serving(meshed: Meshed, ends: AsyncExitStack) -> None:
    """Run the gRPC application on the shop's machine."""
    command = [*meshed.machines["shop"].enter, *PROGRAM, "serve", "0.0.0.0"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    ends.push_async_callback(process.wait)
    ends.callback(process.terminate)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"


async def calls(meshed: Meshed, *methods: str) -> list[str]:
    """Call methods from alice's application; return the status of each call."""
    run = meshed.machines["alice"].run
    result = await asyncio.to_thread(run, *PROGRAM, "call", f"{ECHO}:{GRPC}", *methods)
    return result.stdout.split()


async def ask(meshed: Meshed, path: str) -> int:
    """Send a request of alice's application to the shop; return the status."""
    return (await meshed.get("alice", f"http://{CALLED_AT[V4]}{path}"))[0]


async def served(meshed: Meshed) -> bool:
    """Return whether the additional policy is in force at both ends."""
    well = await ask(meshed, "/books/new/first") == 200 and await calls(meshed, "Say") == ["OK"]
    return well and bool(await meshed.stat("alice", SIDECARS[NEW]))


async def test_stat_counts_grpc_failures_routes_and_matches(
    envoy: str, tmp_path: Path, ends: AsyncExitStack
) -> None:
    """A call with UNAVAILABLE behind a 200 is a failure.

    Requests of two routes are in two rows, admitted requests are counted by match, and denied requests by
    none.
    """
    tmp_path.chmod(0o755)
    how = Transparent(Capture.REDIRECT, ipv6=True)
    meshed = await Meshed.start(tmp_path, V4, how, envoy, ends, joining=True)
    await serving(meshed, ends)
    meshed.write("further.yaml", FURTHER)
    await until(partial(served, meshed))
    before = await meshed.stat("alice", FAILED)
    assert await calls(meshed, "Fail", "Say", "Fail", "Say") == ["UNAVAILABLE", "OK"] * 2
    assert [await ask(meshed, path) for path in ("/books/new/last", "/books/old", "/cellar")] == [
        200,
        200,
        403,
    ]

    async def failures_are_told() -> bool:
        result = [await rows(meshed, of, "echo") for of in ("edges", "services")]
        return [[item["failures"] for item in every] for every in result] == [[before + 2]] * 2

    await until(failures_are_told)
    (edge,) = await rows(meshed, "edges", "echo")
    assert edge["by_class"]["2xx"] == edge["requests"] > before + 2
    assert edge["success"] == round(1 - edge["failures"] / edge["requests"], 6)
    line = ["default/alice", f"default/echo:{GRPC}", "http", f"{edge['success']:.2%}"]
    assert line in [item[:4] for item in await printed(meshed, "edges")]

    async def routes_are_told() -> bool:
        every = [row for row in await rows(meshed, "routes", "shop") if row["source"]]
        details = {item["route"]: item["by_class"]["2xx"] for item in every}
        return details == {name: await meshed.stat("alice", item) for name, item in SIDECARS.items()}

    await until(routes_are_told)
    completed_process = {tuple(item[:4]) for item in await printed(meshed, "routes")}
    assert completed_process >= {(name, "default/shop:80", "default/alice", "100.00%") for name in SIDECARS}

    async def matches_are_told() -> bool:
        every = [row for row in await rows(meshed, "routes", "shop") if not row["source"]]
        fields = {(item["route"], item["destination"]["port"]): item["by_class"]["2xx"] for item in every}
        return fields == {at: await meshed.stat("shop", item) for at, item in ADMITTED.items()}

    await until(matches_are_told)
    # Who is denied is admitted by none: of 403 there is nothing.
    told = {row["route"]: row for row in await rows(meshed, "routes", "shop") if not row["source"]}
    assert {name: item["by_class"]["2xx"] for name, item in told.items()} == {
        name: item["requests"] for name, item in told.items()
    }
    assert told["default/books/books"]["requests"] >= 2
    assert told["default/calls/echo"]["requests"] >= 4
    await rules_of_routes_are_counted(meshed)


async def rules_of_routes_are_counted(meshed: Meshed) -> None:
    """Each rule of the Gateway API has a row with its requests, also the only rule of a Service."""
    meshed.write("routes.yaml", BY_ROUTES)

    async def decides() -> bool:
        return await ask(meshed, "/books/new/routed") == 200 and bool(
            await meshed.stat("alice", RULES["default/web.v1/new-books", "shop"])
        )

    await until(decides)
    assert [await ask(meshed, path) for path in ("/books/new/last", "/books/old")] == [200, 200]
    assert await calls(meshed, "Say", "Fail", "Say") == ["OK", "UNIMPLEMENTED", "OK"]

    async def rules_are_told() -> bool:
        result = {
            (row["route"], name): row["by_class"]["2xx"]
            for name in ("shop", "echo")
            for row in await rows(meshed, "routes", name)
            if row["source"] and row["route"].startswith(("default/web", "default/calls/rule"))
        }
        return result == {key: await meshed.stat("alice", counter) for key, counter in RULES.items()}

    await until(rules_are_told)
    shown = {tuple(item[:4]) for item in await printed(meshed, "routes")}
    assert ("default/web.v1/rule-2", "default/shop:80", "default/alice", "100.00%") in shown
    assert ("default/calls/rule-1", f"default/echo:{GRPC}", "default/alice", "100.00%") in shown
