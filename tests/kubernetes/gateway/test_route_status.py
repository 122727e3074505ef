"""Tests of `status.parents` at a real API server: the entries of Meshwright beside those of others."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import meshwright.kubernetes.status.events.writer
from meshwright.controller.app import run
from meshwright.controller.server import BoundAddresses
from meshwright.controller.settings.settings import load
from tests.e2e.envoys import running
from tests.feature.identity.conftest import Server
from tests.kubernetes.tools.api_requests import Asking, path
from tests.meshes import texts
from tests.tools.envoy import program
from tools.real_parts.cluster import RunningCluster

MERGE = "application/merge-patch+json"
FOREIGN: dict[str, Any] = {
    "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"},
    "controllerName": "example.org/gateway",
    "conditions": [
        {
            "type": "Accepted",
            "status": "True",
            "reason": "Accepted",
            "message": "",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}


def service(name: str) -> dict[str, Any]:
    """Return a Service with an HTTP port."""
    ports = [{"name": "web", "port": 80, "appProtocol": "http"}]
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}}


def parent(port: int) -> dict[str, Any]:
    """Return a reference to the Service `echo`."""
    return {"group": "", "kind": "Service", "name": "echo", "port": port}


ROUTE: dict[str, Any] = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "split", "namespace": "shop"},
    "spec": {"parentRefs": [parent(80)], "rules": [{"backendRefs": [{"name": "v1", "port": 80}]}]},
}


@asynccontextmanager
async def serving(cluster: RunningCluster, state: Path, mesh: Path | None = None) -> AsyncIterator[Server]:
    """Run a server for the namespace, and for the manifests of a directory, until the context ends."""
    stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
    flags: dict[str, object] = dict.fromkeys(("ads_address", "http_address", "debug_address"), "127.0.0.1:0")
    flags |= {"kubernetes": True, "kubeconfig": str(cluster.kubeconfig), "drain_seconds": 0.2}
    flags |= {} if mesh is None else {"mesh": mesh}
    task = asyncio.create_task(
        run(load(flags | {"namespaces": "shop", "state": state}), stop, started=started.set_result)
    )
    try:
        await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            await task  # raises the error because of which the server did not start
        bound: BoundAddresses = started.result()
        yield Server(mesh or state, state, bound)
    finally:
        stop.set()
        await task


def summary(route: Any) -> list[tuple[str, list[tuple[str, str, str, int]]]]:
    """Return the entries in order: the controller, and type, status, reason and generation of conditions."""
    return [
        (
            entry["controllerName"],
            [
                (item["type"], item["status"], item["reason"], item["observedGeneration"])
                for item in entry["conditions"]
            ],
        )
        for entry in route.get("status", {}).get("parents", [])
    ]


async def test_own_entries_follow_the_route_and_others_stay_as_they_are(
    own_cluster: RunningCluster, asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is written, follows an edit, a new Service and a new route, and goes with its parentRef."""
    monkeypatch.setenv("POD_NAMESPACE", "shop")
    for document in (service("echo"), ROUTE):
        assert asking.create(document).status == 201
    status = {"status": {"parents": [FOREIGN]}}
    assert asking("PATCH", f"{path(ROUTE)}/status", status, MERGE).status == 200

    def mine(*conditions: tuple[str, str, str, int]) -> list[Any]:
        return [
            ("example.org/gateway", [("Accepted", "True", "Accepted", 1)]),
            ("meshwright.dev/mesh-controller", list(conditions)),
        ]

    async def until(expected: list[Any]) -> Any:
        return await asyncio.to_thread(asking.until, path(ROUTE), lambda route: summary(route) == expected)

    def edit(*parents: dict[str, Any]) -> None:
        answer = asking("PATCH", path(ROUTE), {"spec": {"parentRefs": list(parents)}}, MERGE)
        assert answer.status == 200, answer.message

    accepted = ("Accepted", "True", "Accepted")
    async with serving(own_cluster, tmp_path / "state"):
        route = await until(mine((*accepted, 1), ("ResolvedRefs", "False", "BackendNotFound", 1)))
        assert route["status"]["parents"][0] == FOREIGN
        assert route["status"]["parents"][1]["parentRef"] == parent(80)
        assert asking.create(service("v1")).status == 201
        resolved = mine((*accepted, 1), ("ResolvedRefs", "True", "ResolvedRefs", 1))
        await until(resolved)
        # Created again, its name, generation and verdict are equal; both changes are often read together.
        assert asking("DELETE", path(ROUTE)).status == 200
        assert asking.create(ROUTE).status == 201
        await until(resolved[1:])
        assert asking("PATCH", f"{path(ROUTE)}/status", status, MERGE).status == 200
        edit(parent(81))
        refused = ("Accepted", "False", "NoMatchingParent", 2)
        route = await until(mine(refused, ("ResolvedRefs", "True", "ResolvedRefs", 2)))
        assert route["status"]["parents"][1]["parentRef"] == parent(81)
        edit({"name": "edge"})
        route = await until(mine()[:1])
        assert route["status"]["parents"] == [FOREIGN]


CLASS: dict[str, Any] = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "GatewayClass",
    "metadata": {"name": "meshwright"},
    "spec": {"controllerName": "meshwright.dev/gateway-controller"},
}
GATEWAY: dict[str, Any] = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "Gateway",
    "metadata": {"name": "front", "namespace": "shop"},
    "spec": {
        "gatewayClassName": "meshwright",
        "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
    },
}
EDGE_ROUTE: dict[str, Any] = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "front", "namespace": "shop"},
    "spec": {"parentRefs": [{"name": "front"}], "rules": [{"backendRefs": [{"name": "v1", "port": 80}]}]},
}
SEEN = {**FOREIGN["conditions"][0], "type": "example.org/Seen"}


def reasons(status: Any) -> dict[str, tuple[str, str, int]]:
    """Return status, reason and generation of each condition."""
    return {
        item["type"]: (item["status"], item["reason"], item.get("observedGeneration", 0))
        for item in status.get("conditions", [])
    }


async def test_gateway_and_class_get_a_status_that_a_real_api_server_takes(
    own_cluster: RunningCluster, asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defaults of the definitions are replaced, a foreign condition stays, and the others follow edits."""
    monkeypatch.setenv("POD_NAMESPACE", "shop")
    for document in (CLASS, GATEWAY, EDGE_ROUTE):
        assert asking.create(document).status == 201

    async def until(document: dict[str, Any], fits: Callable[[Any], bool]) -> Any:
        found = await asyncio.to_thread(
            asking.until, path(document), lambda found: fits(found.get("status", {}))
        )
        return found["status"]

    def is_at(generation: int, listeners: int) -> Callable[[Any], bool]:
        wanted = {
            "Accepted": ("True", "Accepted", generation),
            "Programmed": ("False", "AddressNotAssigned", generation),
        }
        return lambda status: (
            wanted.items() <= reasons(status).items() and len(status.get("listeners", [])) == listeners
        )

    async with serving(own_cluster, tmp_path / "state"):
        status = await until(CLASS, lambda status: reasons(status) == {"Accepted": ("True", "Accepted", 1)})
        assert {"name": "HTTPRoute"} in status["supportedFeatures"]
        status = await until(GATEWAY, is_at(1, 1))
        assert reasons(status["listeners"][0]) == {
            "Accepted": ("True", "Accepted", 1),
            "Conflicted": ("False", "NoConflicts", 1),
            "ResolvedRefs": ("True", "ResolvedRefs", 1),
            "Programmed": ("False", "Pending", 1),
        }
        assert status["listeners"][0]["attachedRoutes"] == 1
        await until(
            EDGE_ROUTE,
            lambda status: (
                [e["controllerName"] for e in status.get("parents", [])]
                == ["meshwright.dev/gateway-controller"]
            ),
        )
        foreign = {"status": {"conditions": [SEEN, *status["conditions"]]}}
        assert asking("PATCH", f"{path(GATEWAY)}/status", foreign, MERGE).status == 200
        listeners = [*GATEWAY["spec"]["listeners"], {"name": "admin", "port": 8080, "protocol": "HTTP"}]
        assert asking("PATCH", path(GATEWAY), {"spec": {"listeners": listeners}}, MERGE).status == 200
        status = await until(GATEWAY, is_at(2, 2))
        assert status["conditions"][0] == SEEN


REJECTED: dict[str, Any] = {**ROUTE, "metadata": {"name": "rejected", "namespace": "shop"}}
ADDRESS = f"127.{92 + os.getpid() % 8}.{os.getpid() // 8 % 250}.5"
FILES = texts.joined(
    texts.PERMISSIVE,
    texts.workload("buyer", ADDRESS, spec=f"upstreams: [{texts.upstream('store', ADDRESS, 7001)}]"),
)
LARGE = "/only[0-9a-f]{120}"
"""Too large for an Envoy without our runtime settings."""


def rule(kind: str, value: str, status: int) -> dict[str, Any]:
    """Return a rule that redirects requests of a path."""
    redirect = {"type": "RequestRedirect", "requestRedirect": {"statusCode": status}}
    return {"matches": [{"path": {"type": kind, "value": value}}], "filters": [redirect]}


@pytest.mark.envoy
async def test_a_rule_that_an_envoy_rejects_is_named_by_the_status_and_an_event(
    own_cluster: RunningCluster, asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The condition Programmed and the Event have the rule and Envoy's message; both end with the edit."""
    monkeypatch.setenv("POD_NAMESPACE", "shop")
    monkeypatch.setattr(meshwright.kubernetes.status.events.writer, "SETTLED", 0.0)
    (tmp_path / "mesh").mkdir()
    (tmp_path / "mesh" / "mesh.yaml").write_text(FILES)
    at_store = {"group": "", "kind": "Service", "name": "store", "port": 80}

    def spec(regex: str) -> dict[str, Any]:
        rules = [rule("RegularExpression", regex, 302), rule("PathPrefix", "/", 301)]
        return {"spec": {"parentRefs": [at_store], "rules": rules}}

    route = {**REJECTED, **spec("/only0*")}
    for document in (service("store"), route):
        assert asking.create(document).status == 201

    async def until(holds: Callable[[Any], object], where: str = path(route)) -> Any:
        return await asyncio.to_thread(asking.until, where, lambda found: bool(holds(found)))

    def programmed(found: Any) -> list[Any]:
        entries = found.get("status", {}).get("parents", [])
        return [item for entry in entries for item in entry["conditions"] if item["type"] == "Programmed"]

    def reasons(listed: Any) -> list[str]:
        return [item["reason"] for item in listed["items"] if item["regarding"]["name"] == "rejected"]

    events = "/apis/events.k8s.io/v1/namespaces/shop/events"
    async with serving(own_cluster, tmp_path / "state", tmp_path / "mesh") as server:
        name = "buyer.buyer.shop"
        async with running(program() or "", server, tmp_path / "envoy", picky=True):
            await until(lambda found: summary(found) and not programmed(found))
            assert asking("PATCH", path(route), spec(LARGE), MERGE).status == 200
            (condition,) = programmed(await until(programmed))
            assert (condition["status"], condition["reason"]) == ("False", "ResourceRejected")
            assert "spec.rules[0].matches[0] is rejected: regex" in condition["message"]
            assert f"Proxy {name} (and perhaps other proxies) rejected route" in condition["message"]
            listed = await until(lambda found: "ResourceRejected" in reasons(found), events)
            (event,) = [item for item in listed["items"] if item["reason"] == "ResourceRejected"]
            assert (event["regarding"]["kind"], "a match of rule-1" in event["note"]) == ("HTTPRoute", True)
            assert asking("PATCH", path(route), spec("/only1*"), MERGE).status == 200
            await until(lambda found: not programmed(found))
            await until(lambda found: "Mended" in reasons(found), events)
