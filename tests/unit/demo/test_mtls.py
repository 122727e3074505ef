"""Tests of the interpretation of an inbound port's answer."""

import socket
import threading
from pathlib import Path

import pytest

from demo import mtls
from tools.ports import free_port

TARGET = "bookstore.bookstore.svc.cluster.local"


def _answering(answer: bytes) -> tuple[socket.socket, threading.Thread]:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            if answer:
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return server, thread


def test_answered_plain_http_is_distinguished_from_no_answer(tmp_path: Path) -> None:
    """A status is reported, and a closed connection is no answer."""
    for answer, expected in (
        (b"HTTP/1.1 200 OK\r\n\r\n", "200"),
        (b"", "no answer"),
        (b"\x15\x03", "no answer"),
    ):
        server, thread = _answering(answer)
        target = mtls.Target("127.0.0.1", server.getsockname()[1], TARGET, tmp_path / "ca.pem")
        with server:
            assert mtls.plain(target, "token") == expected
        thread.join()


def test_closed_port_is_reported_as_connection_refused(tmp_path: Path) -> None:
    """It is a named failure, and no refusal by a sidecar."""
    target = mtls.Target("127.0.0.1", free_port("127.0.0.1"), TARGET, tmp_path / "ca.pem")
    assert mtls.plain(target, "token") == "ConnectionRefusedError"


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ("no answer", True),
        ("ConnectionResetError", True),
        ("tlsv13 alert certificate required", True),
        ("not greeted, not stored", True),
        ("greeted, not stored", False),
        ("200", False),
        ("403", False),
        ("timeout", False),
        ("ConnectionRefusedError", False),
        ("the server's certificate: self-signed certificate", False),
    ],
)
def test_only_a_sidecar_counts_as_refusing(answer: str, refused: bool) -> None:
    """A transport fault, or a response of the server, is no refusal."""
    assert mtls.is_refused(answer) is refused
