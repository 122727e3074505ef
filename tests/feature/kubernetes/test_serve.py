"""Tests of `meshwright serve --kubernetes` with an API server that works, is away, is slow or forbids."""

import json
from typing import Any

import pytest

from tests.feature.kubernetes.api_server import TOKEN, ApiServer
from tests.meshes import texts
from tests.tools.program import Program, Server

pytestmark = pytest.mark.timeout(300)

NAMESPACE = texts.manifest("Namespace", "shop", namespace="")
MESH = texts.joined(
    NAMESPACE,
    texts.account("store"),
    texts.service("store", texts.port(80, 18080)),
    texts.workload("w-1", "10.0.0.1", app="store", account="store", uuid="one"),
)
OBJECTS = 4
MORE = texts.workload("w-2", "10.0.0.2", app="store", account="store", uuid="two")


def _source(program: Program) -> dict[str, Any]:
    status, out, complaint = program.run("sources", "--state", str(program.state), "--json")
    assert status == 0, complaint
    result: dict[str, dict[str, Any]] = {source["name"]: source for source in json.loads(out)["sources"]}
    return result["kubernetes"]


def _proxies(program: Program) -> list[str]:
    status, out, _ = program.run("proxies", "--state", str(program.state), "--json")
    assert status == 0
    return [proxy["uuid"] for proxy in json.loads(out)["proxies"]]


def _good(program: Program) -> object:
    return _source(program)["objects"]["good"]


def _line(program: Program) -> dict[str, str]:
    _, out, _ = program.run("check", "--state", str(program.state), "--json")
    result: dict[str, dict[str, str]] = {check["name"]: check for check in json.loads(out)["checks"]}
    return result["source kubernetes"]


def _is_degraded(server: Server) -> bool:
    status, text = server.get("/healthz/ready")
    assert (status, text.splitlines()[0]) == (200, "ready")
    assert "degraded" not in text or "but: source kubernetes is degraded since 20" in text
    return "degraded" in text


def _failing(server: Server) -> set[str]:
    """Return the kinds that metrics report as failing."""
    lines = (line for line in server.get("/metrics")[1].splitlines() if line.endswith(" 1.0"))
    result = (line for line in lines if line.startswith("meshwright_kubernetes_failing{"))
    return {line.partition('resource="')[2].partition('"')[0] for line in result}


def test_server_follows_a_cluster(program: Program, api: ApiServer) -> None:
    """Created and deleted objects are followed. The API token is in no log or file."""
    api.apply(MESH)
    server = program.serve()
    assert _good(program) == OBJECTS
    assert _line(program)["status"] == "ok"
    api.apply(MORE)
    server.until(lambda: _good(program) == OBJECTS + 1)
    api.delete("Workload", "shop", "w-1")
    server.until(lambda: _good(program) == OBJECTS)
    server.until(lambda: _proxies(program) == ["two"])
    watches = {watch["name"]: watch for watch in _source(program)["watches"]}
    assert watches["workloads.meshwright.dev"]["events"] == 2
    assert all(watch["last_list"] and watch["heard"] and not watch["error"] for watch in watches.values())
    server.stop()
    for path in (server.log_path, *program.state.rglob("*.json")):
        assert TOKEN not in path.read_text()


def test_unreachable_api_server_keeps_the_mesh(program: Program, api: ApiServer) -> None:
    """The server keeps all objects, also after its own restart, and is degraded until the API answers."""
    api.apply(MESH)
    server = program.serve()
    api.go()
    server.until(lambda: _is_degraded(server))
    assert _good(program) == OBJECTS
    result = _line(program)
    assert (result["status"], "since 20" in result["said"]) == ("failed", True)
    assert "services" in _failing(server)
    server.stop()

    again = program.serve()
    assert _good(program) == OBJECTS
    again.until(lambda: _is_degraded(again))
    api.apply(MORE)
    api.come()
    again.until(lambda: _good(program) == OBJECTS + 1)
    again.until(lambda: not _is_degraded(again))
    again.until(lambda: not _failing(again))
    assert (result := _line(program))["status"] == "ok", result


def test_forbidden_kind_is_named_and_other_kinds_are_followed(program: Program, api: ApiServer) -> None:
    """The missing verb and resource are reported. Once they are granted, the kind is read."""
    api.apply(MESH)
    api.be(forbidden=["workloads"])
    server = program.serve()
    assert _good(program) == OBJECTS - 1
    server.until(lambda: _is_degraded(server))
    assert "RBAC grants no `list` on `workloads.meshwright.dev`" in _line(program)["said"]
    assert _failing(server) == {"workloads.meshwright.dev"}
    api.apply(texts.service("other"))
    server.until(lambda: _good(program) == OBJECTS)
    api.be()
    server.until(lambda: _good(program) == OBJECTS + 1)
    server.until(lambda: not _is_degraded(server))


def test_invalid_api_answers_keep_the_mesh(program: Program, api: ApiServer) -> None:
    """HTML, such as a proxy's login page, removes no object."""
    api.apply(MESH)
    server = program.serve()
    api.be(nonsense="<html>not here</html>")
    server.until(lambda: _is_degraded(server))
    assert _good(program) == OBJECTS
    assert "services" in _failing(server)
    api.be()
    server.until(lambda: not _is_degraded(server))
    assert _good(program) == OBJECTS


def test_slow_api_server_is_awaited_at_the_start(program: Program, api: ApiServer) -> None:
    """The start waits for the first lists, because there is nothing else to serve."""
    api.apply(MESH)
    api.be(slow=0.5)
    program.serve()
    assert _good(program) == OBJECTS


def test_namespaces_without_the_selected_label_are_ignored(program: Program, api: ApiServer) -> None:
    """Objects of other namespaces are not read, and an invalid selector is refused."""
    other = texts.manifest("Namespace", "other", namespace="", metadata="labels: {mesh: 'yes'}")
    api.apply(texts.joined(MESH, other, texts.service("there", namespace="other")))
    server = program.serve("--namespace-selector", "mesh=yes")
    assert _good(program) == 2
    server.stop()
    text = program.refused("--namespace-selector", "a in b")
    assert text.startswith("--namespace-selector is 'a in b': 'a in b' must be a label selector")


def test_directory_has_precedence_over_the_cluster(program: Program, api: ApiServer) -> None:
    """The directory's object is used, and the conflict is a problem."""
    api.apply(MESH)
    program.reads = (*program.reads, "--mesh", str(program.mesh))
    (program.mesh / "mesh.yaml").write_text(
        texts.joined(texts.workload("w-1", "10.9.9.9", app="store", account="store", uuid="one"), MORE)
    )
    server = program.serve()
    status, out, _ = program.run("proxies", "--state", str(program.state), "--json")
    assert (status, [proxy["uuid"] for proxy in json.loads(out)["proxies"]]) == (0, ["one", "two"])
    assert [item["code"] for item in server.said("problem")] == ["MW1108"]
