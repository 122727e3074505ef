"""Tests of the complete driver in docs/extend/drivers.md: installed, found, and served."""

import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.peer import read_peer
from tests.meshes import texts
from tests.tools.documented_projects import installed
from tests.tools.forked_cli import ROOT, Executed
from tests.tools.program import Program
from tools.ports import free_port

pytestmark = pytest.mark.timeout(300)
POLICY = texts.joined(
    texts.tcp_route("any", 18080), texts.target("friends", "friend", "store", texts.tcp("any"))
)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The program with the installed driver of the page and a workload of that driver."""
    site = installed("extend/drivers.md", tmp_path)
    made = Program(tmp_path / "state", tmp_path, Executed())
    made.environment["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, site)))
    more = "service: store, ports: [{port: 18080}], applicationAddress: 127.0.0.1"
    mine = texts.workload(
        "one", "10.0.0.1", app="store", account="store", spec=more, annotations=f"{texts.DRIVER}: callers"
    )
    (made.mesh / "mesh.yaml").write_text(
        texts.joined(texts.service("store", texts.port(80, 18080)), mine, POLICY)
    )
    yield made
    made.end()


def _told(program: Program, port: int, credentials: Path) -> str:
    context = ssl.create_default_context(cafile=str(credentials / "ca.pem"))
    context.load_cert_chain(credentials / "proxy.pem", credentials / "proxy.key")
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname="ads.cluster.local") as connection,
    ):
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()


def test_documented_driver_serves_the_admitted_callers(program: Program) -> None:
    """The driver sends the callers that the policy admits, and nothing to a revoked certificate."""
    port = free_port("127.0.0.1")
    server = program.serve("--set", f"driver_addresses=callers=127.0.0.1:{port}")
    assert server.bound["callers"] == f"127.0.0.1:{port}"
    credentials = program.files / "one"
    status, _, complaint = program.issue("one", credentials)
    assert status == 0, complaint
    assert _told(program, port, credentials) == "18080 spiffe://cluster.local/ns/shop/sa/friend\n"

    status, _, complaint = program.revoke(read_peer((credentials / "proxy.pem").read_bytes()).serial)
    assert status == 0, complaint
    assert _told(program, port, credentials) == ""
    server.stop()
