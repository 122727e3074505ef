"""Tests of failed handshakes at a real server: each is a log line with its reason."""

import asyncio
import json
import socket
import ssl
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.contract import Names, Usage
from certs.keys.pair import issue_pair
from meshwright.mesh.names import TrustDomain
from tests.tools.forked_cli import Executed
from tests.tools.own_authority import own_authority
from tests.tools.program import Program, Server
from tests.unit.agent.issued_credentials import authority

DAY = timedelta(days=1)
RAW = "ssl_transport_security.cc"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The program in separate processes, because gRPC reads its log settings at the import."""
    made = Program(tmp_path / "state", tmp_path, Executed())
    yield made
    made.end()


def _client(ours: Path, issued_by: Path, age: timedelta) -> ssl.SSLContext:
    """Return a TLS client with a proxy certificate of the given issuer and age."""
    made = issue_pair(
        authority(issued_by), Usage.PROXY, Names("one.store.shop"), DAY, datetime.now(UTC) - age
    )
    file = issued_by / "client.pem"
    file.write_bytes(made.chain_pem + made.key.reveal())
    context = _anonymous(ours)
    context.load_cert_chain(file)
    return context


def _anonymous(ours: Path) -> ssl.SSLContext:
    bundle = own_authority(ours, TrustDomain("cluster.local"), datetime.now(UTC)).trust_bundle()
    context = ssl.create_default_context(cadata=bundle.decode())
    context.set_alpn_protocols(["h2"])
    return context


def _dial(server: Server, context: ssl.SSLContext | None) -> None:
    """Do a handshake, and wait for its end. Without a context send plain text."""
    host, port = str(server.bound["ads"]).rsplit(":", 1)
    with socket.create_connection((host, int(port)), 30) as plain:
        if context is None:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            plain.recv(1)
            return
        with context.wrap_socket(plain, server_hostname="ads.cluster.local") as tls:
            assert tls.recv(1) == b""


def test_failed_handshakes_are_logged_and_counted_by_reason(program: Program, tmp_path: Path) -> None:
    """The first failure of each reason is logged at once, and no raw gRPC line reaches the log."""
    server = program.serve()
    clients = {
        "certificate-expired": _client(program.state, program.state, 3 * DAY),
        "certificate-not-yet-valid": _client(program.state, program.state, -3 * DAY),
        "certificate-of-another-ca": _client(program.state, tmp_path / "another", timedelta()),
        "no-certificate": _anonymous(program.state),
        "no-tls": None,
    }
    for context in clients.values():
        _dial(server, context)
    server.until(lambda: {item["reason"] for item in server.said("handshakes failed")} == clients.keys())
    (line,) = (e for e in server.said("handshakes failed") if e["reason"] == "certificate-expired")
    assert (line["level"], line["count"], line["said"]) == ("warning", 1, "certificate has expired")
    counted = 'meshwright_xds_handshakes_failed_total{reason="no-tls"}'
    assert server.metric(counted) == 1
    server.stop()
    assert RAW not in server.log_path.read_text()
    assert [item for item in server.log_path.read_text().splitlines() if not item.startswith("{")] == []


def test_requested_grpc_messages_become_log_lines(program: Program) -> None:
    """With `GRPC_VERBOSITY` each message is a log line with its place in the source."""
    program.environment["GRPC_VERBOSITY"] = "DEBUG"
    program.environment["GRPC_TRACE"] = "handshaker"
    server = program.serve()
    _dial(server, None)
    server.until(lambda: server.said("gRPC message") and server.said("handshakes failed"))
    assert {item["source"] for item in server.said("gRPC message")} == {"grpc"}
    assert all(".cc:" in item["place"] or ".h:" in item["place"] for item in server.said("gRPC message"))


async def test_stderr_lines_that_are_not_from_grpc_pass_unchanged(tmp_path: Path) -> None:
    """Output of the interpreter and of other libraries is kept. The raw gRPC error line is removed."""
    script = (
        "import os, sys\n"
        "from meshwright.controller.process.native_lines import NativeLines\n"
        "with NativeLines() as native:\n"
        "    os.write(2, b'native words\\nE1122 09:58:06.809797    7106 a/b.cc:102] raw\\nno end')\n"
        "    print('python words', file=sys.stderr)\n"
        "print('after', file=sys.stderr)\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script),
        cwd=Path(__file__).parents[3],
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin"},
    )
    _, answer = await process.communicate()
    assert process.returncode == 0
    lines = sorted(answer.decode().splitlines())
    assert lines == ["after", "native words", "no end", "python words"], json.dumps(lines)
