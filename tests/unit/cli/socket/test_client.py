"""Tests of the client of the server's socket, and of its errors."""

import http.server
import json
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from meshwright.cli.errors import NegativeAnswer, ServerNotRunning, ServerRefused, UnexpectedResponse
from meshwright.cli.main import app
from meshwright.cli.socket.client import SOCKET_NAME, api, ask, proxy_path
from tests.tools.command_runner import CliRunner

ANSWERS: dict[str, tuple[int, object]] = {
    "/no": (400, {"error": "because"}),
    "/found-out": (409, {"error": "nobody has it"}),
    "/odd": (409, ["no reason"]),
    "/api/v1/list": (200, ["no object"]),
    "/api/v1/new": (404, {"error": "there is nothing at /api/v1/new"}),
    "/api/v1/proxies/a%2Fb": (404, {"error": "proxy 'a/b' does not exist"}),
    "/api/v1/sources": (200, {"sources": []}),
    "/api/v1/explain": (200, {"headline": "allowed"}),
}


class _Handler(http.server.BaseHTTPRequestHandler):
    """Fake server that echoes requests, with a few special paths."""

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        asked = self.rfile.read(length).decode()
        if self.path == "/away":
            return
        if self.path == "/slow":
            self.server.awaited.wait(20)  # type: ignore[attr-defined]
            return
        if self.path.startswith("/api/v1/before"):
            self.send_error(404, "as a server says it that knows nothing of an API")
            return
        if self.path == "/garbage":
            self.wfile.write(b"not http\n")
            return
        status, body = ANSWERS.get(self.path.partition("?")[0], (200, [self.path, asked]))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    do_GET = do_POST = _answer  # noqa: N815 - http.server's names

    def log_message(self, *args: object) -> None:
        """Log nothing."""

    def address_string(self) -> str:
        """Return an empty text, because a Unix peer has no address."""
        return ""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """Yield a state directory whose socket is served."""
    with socketserver.UnixStreamServer(str(tmp_path / SOCKET_NAME), _Handler) as server:
        server.awaited = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield tmp_path
        server.awaited.set()  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()


def test_answer_is_returned_as_json(state: Path) -> None:
    """The path, query and body reach the server."""
    assert ask(state, "GET", "/a", {"b": "c d"}) == ["/a?b=c+d", ""]
    assert ask(state, "POST", "/a", body={"x": 1}) == ["/a", '{"x": 1}']


def test_negative_answer_needs_a_reason(state: Path) -> None:
    """Status 409 without a reason in JSON is an unexpected answer and not a negative one."""
    with pytest.raises(NegativeAnswer, match=r"^nobody has it$"):
        ask(state, "GET", "/found-out")
    with pytest.raises(ServerRefused, match=r"^status 409$"):
        ask(state, "GET", "/odd")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_explanation_without_an_answer_gives_status_2(state: Path, more: tuple[str, ...]) -> None:
    """A server of another version gives status 2 and one sentence, and not the status for "no"."""
    asked = ("explain", "--from", "a/b", "--to", "c/d:80", "--state", str(state), *more)
    done = CliRunner().invoke(app, asked)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "meshwright: the server's answer has no 'answer', because the server has another version than this "
        "command: use the `meshwright` of the server's version; `meshwright version` prints the version of "
        "this one\n"
    )


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("proxies",), "/api/v1/proxies"),
        (("proxy", "retry", "a"), "/proxies/retry"),
        (("sources",), "/api/v1/sources"),
        (("hosts", "--namespace", "a"), "/api/v1/hosts"),
        (("stat", "services"), "/api/v1/stat/services"),
        (("top", "services"), "/api/v1/stat/services"),
        (("certs", "list"), "/api/v1/certificates"),
        (("certs", "show", "a"), "/api/v1/certificates"),
        (("certs", "revoke", "a.b.c"), "/api/v1/certificates"),
        (("certs", "token", "list"), "/certs/tokens"),
        (("certs", "rebuild-ledger"), "/certs/rebuild-ledger"),
        (("certs", "rotate-root", "--status"), "/certs/rotate-root"),
    ],
    ids=lambda item: " ".join(item) if isinstance(item, tuple) else "",
)
def test_answer_without_its_list_is_no_empty_list(
    state: Path, words: tuple[str, ...], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of another version gives status 2, and not "none", "no" or an empty table."""
    monkeypatch.setitem(ANSWERS, path, (200, {"renamed": []}))
    done = CliRunner().invoke(app, (*words, "--state", str(state)))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("meshwright: the server's answer has no ")
    assert "because the server has another version than this command" in done.stderr


def test_refusal_has_the_server_s_text(state: Path) -> None:
    """The error has the server's text instead of the status code."""
    with pytest.raises(ServerRefused, match=r"^because$"):
        ask(state, "GET", "/no")


def test_answer_that_is_not_http_is_an_error(state: Path) -> None:
    """Another program may listen at the socket."""
    with pytest.raises(ServerRefused, match="the server did not answer as expected"):
        ask(state, "GET", "/garbage")


def test_closed_or_silent_connection_is_an_error_with_the_next_step(state: Path) -> None:
    """The errors differ from that of a missing server, because the request may have had an effect."""
    with pytest.raises(
        ServerRefused, match=r"^the server stopped before it answered: try again when it runs$"
    ):
        ask(state, "GET", "/away")
    with pytest.raises(
        ServerRefused,
        match=r"^the server has not answered within 0.05 s: try again; `meshwright check` shows its state$",
    ):
        ask(state, "GET", "/slow", seconds=0.05)


def test_api_answer_must_be_an_object(state: Path) -> None:
    """Names of proxies are escaped in the path, and empty names or dots are refused."""
    assert api(state, "/sources", [("a", "b"), ("a", "c")]) == {"sources": []}
    with pytest.raises(
        UnexpectedResponse,
        match=r"^the server's answer to /api/v1/list is not a JSON object, because the server has another ",
    ):
        api(state, "/list")
    with pytest.raises(ServerRefused, match=r"^proxy 'a/b' does not exist$") as caught:
        api(state, proxy_path("a/b"))
    assert not isinstance(caught.value, UnexpectedResponse)
    for name in ("", ".", ".."):
        with pytest.raises(ServerRefused, match=r"' does not exist: `meshwright proxies` lists all$"):
            proxy_path(name)


@pytest.mark.parametrize("path", ["/new", "/before", "/before/any/api"])
def test_missing_api_path_means_an_older_server(state: Path, path: str) -> None:
    """A server without the path or without any API is older, and the error names the next step."""
    with pytest.raises(UnexpectedResponse) as caught:
        api(state, path)
    assert caught.value.in_words() == (
        f"meshwright: the server of {state} has no /api/v1{path}, because the server is older than this "
        "command: use the `meshwright` of the server's version; `meshwright version` prints the version of "
        "this one\n"
    )


def test_missing_server_is_an_error_with_the_directory(tmp_path: Path) -> None:
    """A missing socket, and a socket without a server, raise ServerNotRunning."""
    with pytest.raises(ServerNotRunning, match="no server is running with the state directory"):
        ask(tmp_path, "GET", "/a")
    socketserver.UnixStreamServer(str(tmp_path / SOCKET_NAME), _Handler).server_close()
    with pytest.raises(ServerNotRunning):
        ask(tmp_path, "GET", "/a")
