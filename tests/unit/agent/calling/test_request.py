"""Tests of a diagnostic request over real sockets: its bytes, its outcome and its redirection."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from meshwright.agent.calling.outcomes import Outcome, OwnAnswer
from meshwright.agent.calling.request import Call, made
from meshwright.agent.calling.response import is_listened_at, is_taken, other_ends
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.layout import Side

TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:3A99 05000A0A:D431 01 00000000:00000000 00:00000000 00000000  1500        0 1 1
   1: 0100007F:3A9A 05000A0A:D431 0A 00000000:00000000 00:00000000 00000000  1500        0 1 1
"""
TABLE6 = """  sl  local_address                         remote_address                        st
   0: 0000000000000000FFFF00000100007F:3A99 0000000000000000FFFF000005000A0A:D431 03
   1: 000000000000000000000000000000: x
"""


def test_other_end_of_a_connection_is_read_from_the_kernel_s_tables() -> None:
    """An IPv4 peer is found in the IPv4 or IPv6 table, accepted or not; listeners are skipped."""
    ours = HostPort("10.10.0.5", 0xD431)
    assert other_ends(TABLE, ours) == (15001,)
    assert other_ends(TABLE6.rpartition("   1:")[0], ours) == (15001,)
    assert other_ends(TABLE, HostPort("10.10.0.5", 1)) == ()


@contextmanager
def server(answer: Callable[[socket.socket], object], family: str = "127.0.0.1") -> Iterator[HostPort]:
    """Serve one connection."""
    kind = socket.AF_INET6 if ":" in family else socket.AF_INET
    listening = socket.create_server((family, 0), family=kind)

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            answer(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield HostPort(family, listening.getsockname()[1])
    finally:
        thread.join()
        listening.close()


def call(where: HostPort, method: str = "POST", seconds: float = 20, *, led: bool = False) -> Call:
    """Return a request with headers of its own."""
    return Call(where, method, "/books?x=1", (("host", "store.shop"), ("x-tag", "a")), led, seconds)


@pytest.mark.parametrize("family", ["127.0.0.1", "::1"])
def test_request_is_sent_as_given_and_its_answer_is_read(family: str) -> None:
    """The method, path and headers are sent.

    The answer has the status, the sidecar's reason and Envoy's text.
    """
    got: list[bytes] = []

    def denied(connection: socket.socket) -> None:
        got.append(connection.recv(65536))
        connection.sendall(
            b"HTTP/1.1 403 Forbidden\r\nx-meshwright-denied: no-rule-fits shop/buyers\r\n"
            b"content-length: 19\r\n\r\nRBAC: access denied"
        )

    with server(denied, family) as where:
        seen = made(call(where))
    sent = b"POST /books?x=1 HTTP/1.1\r\nhost: store.shop\r\nx-tag: a\r\n"
    assert got == [sent + b"x-meshwright-diagnosis: true\r\nConnection: close\r\n\r\n"]
    assert (seen.outcome, seen.status, seen.denied) == (Outcome.ANSWERED, 403, "no-rule-fits shop/buyers")
    assert (seen.words, seen.where) == ("RBAC: access denied", str(where))


def test_own_answer_of_a_sidecar_is_known_by_its_header() -> None:
    """Without an error text, only the header tells a sidecar's answer from the application's."""

    def no_route(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(
            b"HTTP/1.1 404 Not Found\r\nx-meshwright-own-answer: caller NR route_not_found\r\n"
            b"content-length: 0\r\n\r\n"
        )

    with server(no_route) as where:
        seen = made(call(where))
    assert (seen.status, seen.own) == (404, OwnAnswer(Side.CALLER, ("NR",), "route_not_found"))


def test_request_without_an_answer_has_an_outcome() -> None:
    """A closed, refused or silent connection and an invalid request each have their own outcome."""
    with server(lambda connection: None) as where:
        assert made(call(where)).outcome is Outcome.CLOSED
    assert made(call(where)).outcome is Outcome.REFUSED
    over = threading.Event()
    with server(lambda connection: over.wait(60)) as where:
        assert made(call(where, seconds=0.1)).outcome is Outcome.SILENT
        over.set()
    with server(lambda connection: None) as where:
        seen = made(call(where, method="GET\r\nX: y"))
    assert seen.outcome is Outcome.NOT_TRIED
    assert "the request is invalid" in seen.words


def test_connection_without_a_request_is_open_or_closed() -> None:
    """Without a method no request is sent.

    A server's greeting or a silent server means an open connection.
    """
    with server(lambda connection: None) as where:
        assert made(call(where, "")).outcome is Outcome.CLOSED
    with server(lambda connection: connection.sendall(b"220 ready\r\n")) as where:
        assert made(call(where, "")).outcome is Outcome.OPEN
    over = threading.Event()
    with server(lambda connection: over.wait(60)) as where:
        assert made(call(where, "", seconds=0.1)).outcome is Outcome.OPEN
        over.set()


def test_request_is_not_sent_without_redirection_to_the_sidecar() -> None:
    """If the other end is not at the sidecar's port, no byte is sent, and the outcome gives the reason."""
    got: list[bytes] = []
    with server(lambda connection: got.append(connection.recv(65536))) as where:
        seen = made(call(where, led=True))
    assert (seen.outcome, got) == (Outcome.NOT_TRIED, [b""])
    assert "was not redirected to the sidecar" in seen.words


def test_connection_taken_on_this_machine_is_known_before_it_is_accepted() -> None:
    """A connection is attributed to a local port before the program accepts it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert is_listened_at(port)
        with socket.create_connection(("127.0.0.1", port)) as ours:
            assert is_taken(ours, port)
            assert not is_taken(ours, port - 1)
    assert not is_listened_at(port)
