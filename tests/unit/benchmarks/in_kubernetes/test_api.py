"""Tests of writing objects to a Kubernetes API: over TLS, with separate requests for statuses."""

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from benchmarks.in_kubernetes import objects as core
from benchmarks.in_kubernetes.api import connection, create_all
from benchmarks.meshes import generator as meshes
from benchmarks.peers.istiod import objects
from benchmarks.processes.programs import BenchmarkError
from tools.real_parts.cluster import Cluster
from tools.real_parts.flags import Place
from tools.real_parts.keys import Keys

Asked = tuple[str, str, str, Any]
"""Method, path, content type and body."""


@pytest.fixture
def asked() -> list[Asked]:
    """Return the requests in their order."""
    return []


@pytest.fixture
def cluster(tmp_path: Path, asked: list[Asked]) -> Iterator[Cluster]:
    """Serve an API that records requests and refuses objects named `refused`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append((self.command, self.path, self.headers["Content-Type"], json.loads(body or b"null")))
            answer = b'{"message": "no"}' if "refused" in self.path else b"{}"
            self.send_response(403 if "refused" in self.path else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - the library calls them so

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    keys = Keys(tmp_path / "keys")
    keys.issue("server", "kube-apiserver")
    keys.issue("admin", "admin", "system:masters")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "keys" / "server.crt", tmp_path / "keys" / "server.key")
        context.load_verify_locations(tmp_path / "keys" / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="api")
        thread.start()
        yield Cluster(Place(tmp_path, server.server_port, 0, 0, 0))
        server.shutdown()
        thread.join()


def test_status_is_written_after_its_object(cluster: Cluster, asked: list[Asked]) -> None:
    """An API server ignores the status in a creation."""
    pod = next(item for item in core.service(3) if item.kind == core.POD)
    with connection(cluster) as api:
        api.create(pod)
    (created, status) = asked
    assert created[:3] == ("POST", "/api/v1/namespaces/team-3/pods", "application/json")
    assert created[3]["kind"] == "Pod"
    assert created[3]["metadata"]["name"] == "service-3-0"
    assert "status" not in created[3]
    assert status[:3] == (
        "PATCH",
        "/api/v1/namespaces/team-3/pods/service-3-0/status",
        "application/merge-patch+json",
    )
    assert status[3]["status"]["podIP"] == str(meshes.workload(3, 0).address)


def test_parallel_writers_write_each_object_once(cluster: Cluster, asked: list[Asked]) -> None:
    """The number of objects is returned."""
    scopes = [objects.sidecar(number, 40) for number in range(40)]
    assert create_all(cluster, scopes) == 40
    names = [body["metadata"]["name"] for _, _, _, body in asked]
    assert sorted(names) == sorted(scope.name for scope in scopes)


def test_refusal_of_the_api_is_an_error(cluster: Cluster) -> None:
    """The error has the API's message. Otherwise an incomplete mesh would be measured."""
    with connection(cluster) as api, pytest.raises(BenchmarkError, match=r"403 .*no"):
        api.delete(core.Object(core.SERVICE, "team-0", "refused", {}))
