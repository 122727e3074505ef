"""A Vault that is silent, or talks for ever: nobody waits for it longer than told, and a stop ends it."""

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
from tests.unit.certs.issuers.cas import ca

NOW = datetime(2031, 1, 1, tzinfo=UTC)
LONG = 60.0


class Silent:
    """One that takes connections and says `drops` again and again, if it says anything."""

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
        """Return where."""
        return int(self._server.getsockname()[1])

    def _serve(self) -> None:
        talking = []
        while not self._ended.is_set():
            connection, _ = self._server.accept()
            self.count += 1
            self.came.release()
            talking.append(threading.Thread(target=self._talk, args=(connection,)))
            talking[-1].start()
        for each in talking:
            each.join(LONG)

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            while not self._ended.wait(0.02):
                try:
                    connection.sendall(self._drops)
                except OSError:
                    return

    def end(self) -> None:
        """Have all end."""
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
    return VaultIssuer(api, ByAppRole(role), VaultPki("pki", "mesh"), TrustDomain("m.x"), TrustBundle.of([]))


def test_many_who_need_a_login_wait_for_one(tmp_path: Path) -> None:
    """Of eight at once one asks, and what comes of that is everybody's answer."""
    with _silent() as vault, ThreadPoolExecutor(8) as pool:
        issuer, together = _issuer(tmp_path, vault.port, 1.0), threading.Barrier(8)

        def ask() -> None:
            together.wait(LONG)
            issuer._session.token(NOW)

        for each in [pool.submit(ask) for _ in range(8)]:
            with pytest.raises(IssuerError, match=r"cannot be reached: timed out after 1 s"):
                each.result(LONG)
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
def test_one_that_never_comes_to_an_end_has_so_long_and_no_longer(tmp_path: Path, drops: bytes) -> None:
    """However often it says something: the time is for the whole of a question."""
    with _silent(drops) as vault:
        scheme = "https" if drops.startswith(b"\x16") else "http"
        with pytest.raises(IssuerError, match="cannot be reached"):
            _issuer(tmp_path, vault.port, 0.5, scheme).refresh()
    assert not [each for each in threading.enumerate() if each.name == "issuer question" and _lives(each)]


def test_a_start_without_it_says_so_and_goes_on_with_the_roots_of_before(tmp_path: Path) -> None:
    """Where it was asked before; else nobody would know whom to trust, and that is the start's end."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        api = VaultApi(f"http://127.0.0.1:{gone.getsockname()[1]}")
    told = ByAppRole(tmp_path / "none"), VaultPki("pki", "mesh"), TrustDomain("m.x")
    known = TrustBundle.of([ca("root", NOW).pem])
    with capture_logs() as logs:
        assert VaultIssuer.open(api, *told, known).trust_bundle() == known.pem
    (said,) = logs
    assert said["event"] == "issuer check failed; the saved roots stay in use"
    assert "cannot be reached" in said["reason"]
    with pytest.raises(IssuerError, match="cannot be reached"):
        VaultIssuer.open(api, *told, TrustBundle.of([]))


class _Late(Line):
    """A connection of which a single read takes all the time there is."""

    def answer(self, question: Question) -> Answered:
        """Say so as a socket does."""
        raise TimeoutError("timed out")


def test_what_takes_too_long_is_said_in_one_way() -> None:
    """Whoever notices it first: the socket, or who waits for it."""
    question = Question("GET", "/", None, {})
    with pytest.raises(TimeoutError, match=r"^timed out after 60 s$"):
        Exchanges().ask(_Late("127.0.0.1", 9, LONG, None), question, LONG)


def _lives(thread: threading.Thread) -> bool:
    thread.join(LONG)
    return thread.is_alive()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_stop_ends_all_that_is_asked(tmp_path: Path, scheme: str) -> None:
    """Those who wait for an answer, those who wait for another's login, and whoever comes later."""
    with _silent() as vault, ThreadPoolExecutor(3) as pool:
        issuer = _issuer(tmp_path, vault.port, 3600.0, scheme)
        asked: list[Future[object]] = [pool.submit(issuer.refresh)]
        asked += [pool.submit(issuer._session.token, NOW) for _ in range(2)]
        for _ in range(2):
            assert vault.came.acquire(timeout=LONG)
        issuer.close()
        for each in asked:
            with pytest.raises(IssuerError, match="cannot be reached: the server is stopping"):
                each.result(LONG)
        with pytest.raises(IssuerError, match="the server is stopping"):
            issuer.refresh()
    assert not [each for each in threading.enumerate() if each.name == "issuer question" and _lives(each)]


def test_an_answer_that_is_too_large_is_cut() -> None:
    """A Vault, or whoever stands in its place, cannot fill the memory of the server."""
    size = 2 * 1024 * 1024
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as beside:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):  # the client ends the connection before its end
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)

        beside.submit(answer)
        line = Line("127.0.0.1", server.getsockname()[1], LONG, None)
        status, content = Exchanges().ask(line, Question("GET", "/", None, {}), LONG)
    assert (status, len(content)) == (200, 1024 * 1024)
