"""Tests of the demo in a cluster, as far as they need none: manifests, and requests to programs in Pods."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from demo.apps.client import logged
from demo.apps.counters import Counters
from demo.apps.osm import LINGER_SECONDS, settings
from demo.kubernetes.kubectl import Kubectl
from demo.kubernetes.pods import Program, ProgramSelector
from demo.kubernetes.store import applications, namespaces, selected, with_image
from demo.supervisor import DemoError
from demo.topology import PLACES, SERVICE_PORTS, STORE_V1

ROOT = Path(__file__).parents[4]
WORKLOADS = [application for application in applications() if "template" in application.get("spec", {})]


def _labels(workload: dict[str, Any]) -> dict[str, str]:
    return dict(workload["spec"]["template"]["metadata"]["labels"])


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_each_place_is_one_workload_of_the_published_manifests(place: Any) -> None:
    """Namespace, labels, container and ServiceAccount identify it; its Services have the table's ports."""
    program_selector = selected(place)
    wanted = dict(item.split("=") for item in program_selector.labels.split(","))
    (workload,) = (
        item
        for item in WORKLOADS
        if item["metadata"]["namespace"] == program_selector.namespace
        and wanted.items() <= _labels(item).items()
    )
    pod = workload["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == place.identity.service_account
    assert [container["name"] for container in pod["containers"]] == [program_selector.container]
    services = {
        application["metadata"]["name"]: application["spec"]
        for application in applications()
        if application["kind"] == "Service"
        and application["metadata"]["namespace"] == program_selector.namespace
    }
    for key in place.backs:
        assert services[str(key.name)]["selector"].items() <= _labels(workload).items()
        assert [port["port"] for port in services[str(key.name)]["ports"]] == [SERVICE_PORTS[key]]


def test_only_images_of_the_published_manifests_are_changed() -> None:
    """The pull policy changes too, because our node pulls no images.

    The namespaces are those of the demo's places.
    """
    for before in applications():
        after = with_image(json.loads(json.dumps(before)), "a:1")
        for document in (before, after):
            for container in (
                document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ())
            ):
                assert container.pop("image", "a:1")
                container.pop("imagePullPolicy", None)
        assert before == after
    assert {namespace["metadata"]["name"] for namespace in namespaces()} == {
        str(place.identity.namespace) for place in PLACES
    }


def test_client_in_a_pod_logs_each_call() -> None:
    """The lines are those of Open Service Mesh's own programs, which the README quotes."""
    app_settings = settings("bookbuyer", 14001, {})
    url = f"{app_settings.bookstore}/buy-a-book/new"
    assert app_settings.logged
    assert [logged(url, item) for item in ("200", "refused")] == [
        "Status: 200 (http://bookstore.bookstore:14001/buy-a-book/new)",
        "Error fetching http://bookstore.bookstore:14001/buy-a-book/new: refused",
    ]


def test_programs_read_their_targets_from_osm_environment_variables() -> None:
    """A server lingers when it is ended, until all callers know."""
    app_settings = settings("bookbuyer", 14001, {"BOOKSTORE_NAMESPACE": "books", "BOOKSTORE_SVC": "store"})
    assert (app_settings.bookstore, app_settings.listen, app_settings.linger) == (
        "http://store.books:14001",
        None,
        0,
    )
    app_settings = settings(
        "bookstore", 14001, {"IDENTITY": "bookstore-v1", "BOOKWAREHOUSE_NAMESPACE": "depot"}
    )
    assert (app_settings.name, app_settings.bookwarehouse) == (
        STORE_V1.name,
        "http://bookwarehouse.depot:14001",
    )
    assert (app_settings.listen, app_settings.linger) == (("0.0.0.0", 14001), LINGER_SECONDS)


async def _served(path: Path) -> asyncio.Server:
    """Serve a program's status on a socket, and 404 for other paths."""
    body = Counters().to_json()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        status, text = ("200 OK", body) if asked.startswith(b"GET /status ") else ("404 Not Found", "what?")
        head = f"HTTP/1.1 {status}\r\ncontent-length: {len(text)}\r\nconnection: close\r\n\r\n"
        writer.write((head + text).encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return await asyncio.start_unix_server(answer, path)


async def test_relay_answers_each_request_by_its_number(tmp_path: Path) -> None:
    """It answers also if the program does not know the path or is gone, and ends with its input."""
    socket = tmp_path / "app.sock"
    server = await _served(socket)
    program = "import asyncio, pathlib, sys; from demo.apps.relay import serve; "
    program += "asyncio.run(serve(pathlib.Path(sys.argv[1])))"
    relay = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(socket), stdin=PIPE, stdout=PIPE, cwd=ROOT
    )
    assert relay.stdin is not None
    assert relay.stdout is not None

    async def asked(number: str, path: str) -> dict[str, Any]:
        assert relay.stdin is not None
        assert relay.stdout is not None
        question = {"id": number, "method": "GET", "path": path, "body": ""}
        relay.stdin.write(json.dumps(question).encode() + b"\n")
        return dict(json.loads(await relay.stdout.readline()))

    try:
        assert await asked("1", "/status") == {"id": "1", "status": 200, "body": Counters().to_json()}
        assert (await asked("2", "/nothing"))["status"] == 404
        server.close()
        socket.unlink(missing_ok=True)
        assert (await asked("3", "/status"))["status"] == 503
    finally:
        relay.stdin.close()
        server.close()
    assert await relay.wait() == 0
    assert await relay.stdout.read() == b""


async def test_failing_kubectl_is_reported_with_its_message(tmp_path: Path) -> None:
    """The error has kubectl's message, or the unmet condition."""
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho 'no such cluster' >&2\nexit 1\n")
    program.chmod(0o755)
    kubectl = Kubectl(str(program), tmp_path / "kubeconfig", tmp_path / "cache")
    with pytest.raises(DemoError, match="no such cluster"):
        await kubectl("get", "pods")
    with pytest.raises(DemoError, match="is not as expected after"):
        await kubectl.until(lambda _: True, "pods", seconds=0)


async def test_broken_exec_stream_is_opened_again_by_the_next_request(tmp_path: Path) -> None:
    """The first request gets an error, and the next one is answered."""
    pod = {
        "metadata": {"name": "one", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    (tmp_path / "pods.json").write_text(json.dumps({"items": [pod]}))
    answer = json.dumps({"id": "2", "status": 200, "body": "well"})
    program = tmp_path / "kubectl"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$3" in get) exec cat {tmp_path}/pods.json;; esac\n'
        "read line\n"
        f"if mkdir {tmp_path}/once 2>/dev/null; then exit 1; fi\n"
        f"echo '{answer}'\nread line\n"
    )
    program.chmod(0o755)
    kubectl = Kubectl(str(program), tmp_path / "kubeconfig", tmp_path / "cache")
    asked = Program(kubectl, ProgramSelector("default", "app=one", "app"))
    try:
        with pytest.raises(OSError, match="has ended"):
            await asked("GET", "/status")
        assert await asked("GET", "/status") == "well"
    finally:
        await asked.close()
