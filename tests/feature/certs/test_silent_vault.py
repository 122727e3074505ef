"""Tests of a Vault that is silent or answers without an end: timeouts and the stop of the server."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from certs.errors import IssuerError
from certs.issuers.exchanges import Answered, Exchanges, Line, Question
from certs.issuers.vault.http import VaultApi
from certs.issuers.vault.issuer import VaultIssuer, VaultPki
from certs.issuers.vault.login import ByAppRole
from certs.keys.bundle import TrustBundle
from meshwright.mesh.names import TrustDomain
from tests.unit.certs.issuers.example_cas import ca

NOW = datetime(2031, 1, 1, tzinfo=UTC)
LONG = 60.0


class Silent:
    """A server that accepts connections and sends `drops` repeatedly, or nothing."""

    def __init__(self, drops: bytes = b"") -> None:
        self.came = threading.Semaphore(0)
        self.count = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self._drops = drops
        self._ended = threading.Event()
        self._serving = threading.Thread(target=self._serve)
        self._serving.start()

    @property
    def port(self) -> int:
        """Return the port."""
        return int(self._server.getsockname()[1])

    def _serve(self) -> None:
        talking = []
        while not self._ended.is_set():
            connection, _ = self._server.accept()
            self.count += 1
            self.came.release()
            talking.append(threading.Thread(target=self._talk, args=(connection,)))
            talking[-1].start()
        for thread in talking:
            thread.join(LONG)

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            while not self._ended.wait(0.02):
                try:
                    connection.sendall(self._drops)
                except OSError:
                    return

    def end(self) -> None:
        """End all connections and the server."""
        self._ended.set()
        with socket.create_connection(("127.0.0.1", self.port), LONG):
            pass
        self._serving.join(LONG)
        self._server.close()


@contextmanager
def _silent(drops: bytes = b"") -> Iterator[Silent]:
    made = Silent(drops)
    try:
        yield made
    finally:
        made.end()


def _issuer(tmp_path: Path, port: int, seconds: float, scheme: str = "http") -> VaultIssuer:
    role = tmp_path / "approle"
    role.write_text("role\nsecret\n")
    api = VaultApi(f"{scheme}://127.0.0.1:{port}", seconds=seconds)
    return VaultIssuer(
        api, ByAppRole(role), VaultPki("pki", "mesh"), TrustDomain("m.x"), TrustBundle.from_pems([])
    )


def test_concurrent_callers_share_a_login(tmp_path: Path) -> None:
    """Callers share the result of a pending login, so eight callers need fewer than eight logins."""
    with _silent() as vault, ThreadPoolExecutor(8) as pool:
        issuer, together = _issuer(tmp_path, vault.port, 1.0), threading.Barrier(8)

        def ask() -> None:
            together.wait(LONG)
            issuer._session.token(NOW)

        for future in [pool.submit(ask) for _ in range(8)]:
            with pytest.raises(IssuerError, match=r"cannot be reached: timed out after 1 s"):
                future.result(LONG)
        assert vault.count < 8, "a thread that came only when the first had its answer asks anew"


@pytest.mark.parametrize(
    "drops",
    [
        pytest.param(b"x", id="status"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA: b\r\n", id="headers"),
        pytest.param(b"HTTP/1.0 200 OK\r\n\r\n", id="content"),
        pytest.param(b"\x16\x03\x03\x00\x04", id="handshake"),
    ],
)
def test_endless_answer_ends_at_the_time_limit(tmp_path: Path, drops: bytes) -> None:
    """The limit applies to the whole exchange, however often the server sends a few bytes."""
    with _silent(drops) as vault:
        scheme = "https" if drops.startswith(b"\x16") else "http"
        with pytest.raises(IssuerError, match="cannot be reached"):
            _issuer(tmp_path, vault.port, 0.5, scheme).refresh()
    assert not [
        thread for thread in threading.enumerate() if thread.name == "issuer question" and _lives(thread)
    ]


def test_start_without_vault_uses_the_saved_roots(tmp_path: Path) -> None:
    """With saved roots the start continues with a warning.

    Without saved roots there is nothing to trust, so the start fails.
    """
    with socket.create_server(("127.0.0.1", 0)) as gone:
        api = VaultApi(f"http://127.0.0.1:{gone.getsockname()[1]}")
    messages = ByAppRole(tmp_path / "none"), VaultPki("pki", "mesh"), TrustDomain("m.x")
    known = TrustBundle.from_pems([ca("root", NOW).pem])
    with capture_logs() as logs:
        assert VaultIssuer.open(api, *messages, known).trust_bundle() == known.pem
    (answer,) = logs
    assert answer["event"] == "issuer check failed; the saved roots stay in use"
    assert "cannot be reached" in answer["reason"]
    with pytest.raises(IssuerError, match="cannot be reached"):
        VaultIssuer.open(api, *messages, TrustBundle.from_pems([]))


class _Late(Line):
    """A connection whose only read uses the whole time limit."""

    def answer(self, question: Question) -> Answered:
        """Raise the error of a socket that timed out."""
        raise TimeoutError("timed out")


def test_timeout_of_the_socket_has_the_same_message() -> None:
    """A timeout that the socket notices is reported with the same text as one that the caller notices."""
    question = Question("GET", "/", None, {})
    with pytest.raises(TimeoutError, match=r"^timed out after 60 s$"):
        Exchanges().ask(_Late("127.0.0.1", 9, LONG, None), question, LONG)


def _lives(thread: threading.Thread) -> bool:
    thread.join(LONG)
    return thread.is_alive()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_stop_ends_pending_and_later_requests(tmp_path: Path, scheme: str) -> None:
    """Pending requests, callers that wait for another's login, and later requests fail with the reason."""
    with _silent() as vault, ThreadPoolExecutor(3) as pool:
        issuer = _issuer(tmp_path, vault.port, 3600.0, scheme)
        asked: list[Future[object]] = [pool.submit(issuer.refresh)]
        asked += [pool.submit(issuer._session.token, NOW) for _ in range(2)]
        for _ in range(2):
            assert vault.came.acquire(timeout=LONG)
        issuer.close()
        for future in asked:
            with pytest.raises(IssuerError, match="cannot be reached: the server is stopping"):
                future.result(LONG)
        with pytest.raises(IssuerError, match="the server is stopping"):
            issuer.refresh()
    assert not [
        thread for thread in threading.enumerate() if thread.name == "issuer question" and _lives(thread)
    ]


def test_too_large_answer_is_truncated() -> None:
    """An answer is cut at 1 MiB, so that a faulty Vault cannot fill the server's memory."""
    size = 2 * 1024 * 1024
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as beside:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):  # the client closes the connection first
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)

        beside.submit(answer)
        line = Line("127.0.0.1", server.getsockname()[1], LONG, None)
        status, content = Exchanges().ask(line, Question("GET", "/", None, {}), LONG)
    assert (status, len(content)) == (200, 1024 * 1024)
