"""Asking the server over its socket, and what is said when that fails."""

import http.server
import json
import socketserver
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from meshwright.cli.errors import NegativeAnswer, ServerNotRunning, ServerRefused, UnexpectedResponse
from meshwright.cli.main import app
from meshwright.cli.socket.client import SOCKET_NAME, api, ask, proxy_path
from tests.tools.command_runner import CliRunner

ANSWERS: Mapping[str, tuple[int, object]] = {
    "/no": (400, {"error": "because"}),
    "/found-out": (409, {"error": "nobody has it"}),
    "/odd": (409, ["no reason"]),
    "/api/v1/list": (200, ["no object"]),
    "/api/v1/new": (404, {"error": "there is no page at /api/v1/new"}),
    "/api/v1/proxies/a%2Fb": (404, {"error": "proxy 'a/b' does not exist"}),
    "/api/v1/sources": (200, {"sources": []}),
    "/api/v1/explain": (200, {"headline": "allowed"}),
}


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers what it was asked, and refuses `/no`."""

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
        """Say nothing."""

    def address_string(self) -> str:
        """Answer something: a Unix peer has no address."""
        return ""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """Return a state directory whose socket answers."""
    with socketserver.UnixStreamServer(str(tmp_path / SOCKET_NAME), _Handler) as server:
        server.awaited = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield tmp_path
        server.awaited.set()  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()


def test_an_answer_is_returned_as_json(state: Path) -> None:
    """Path, query and body arrive."""
    assert ask(state, "GET", "/a", {"b": "c d"}) == ["/a?b=c+d", ""]
    assert ask(state, "POST", "/a", body={"x": 1}) == ["/a", '{"x": 1}']


def test_a_no_is_raised_as_one_only_where_its_reason_is_said(state: Path) -> None:
    """Whatever else comes with that status, nothing was found out."""
    with pytest.raises(NegativeAnswer, match=r"^nobody has it$"):
        ask(state, "GET", "/found-out")
    with pytest.raises(ServerRefused, match=r"^status 409$"):
        ask(state, "GET", "/odd")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_explanation_that_lacks_its_answer_is_no_no(state: Path, more: tuple[str, ...]) -> None:
    """Of a server of another version: status 2, and one sentence."""
    asked = ("explain", "--from", "a/b", "--to", "c/d:80", "--state", str(state), *more)
    done = CliRunner().invoke(app, asked)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "meshwright: the server's answer has no 'answer', because the server has another version: use the "
        "`meshwright` of the server's version; `meshwright version` prints the version of this one\n"
    )


def test_a_refusal_is_raised_in_the_server_s_words(state: Path) -> None:
    """Not as a status code."""
    with pytest.raises(ServerRefused, match=r"^because$"):
        ask(state, "GET", "/no")


def test_an_answer_that_is_none_is_said(state: Path) -> None:
    """Something else listens there."""
    with pytest.raises(ServerRefused, match="the server did not answer as expected"):
        ask(state, "GET", "/garbage")


def test_a_server_that_goes_away_or_is_silent_is_said(state: Path) -> None:
    """It was there: whether it did what it was asked nobody knows."""
    with pytest.raises(
        ServerRefused, match=r"^the server stopped before it answered: try again when it runs$"
    ):
        ask(state, "GET", "/away")
    with pytest.raises(
        ServerRefused,
        match=r"^the server has not answered within 0.05 s: try again; `meshwright check` shows its state$",
    ):
        ask(state, "GET", "/slow", seconds=0.05)


def test_what_is_asked_of_the_api_is_an_object(state: Path) -> None:
    """Below its own path, with names that may have any character."""
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
def test_a_server_that_lacks_the_path_is_said_to_be_older(state: Path, path: str) -> None:
    """Whether it has an API, and not this of it, or none at all; with what to do."""
    with pytest.raises(UnexpectedResponse) as caught:
        api(state, path)
    assert caught.value.in_words() == (
        f"meshwright: the server of {state} has no /api/v1{path}, because the server is older than this "
        "command: use the `meshwright` of the server's version; `meshwright version` prints the version of "
        "this one\n"
    )


def test_no_server_is_said_with_the_directory(tmp_path: Path) -> None:
    """Without a socket, and with one that nobody serves."""
    with pytest.raises(ServerNotRunning, match="no server is running with the state directory"):
        ask(tmp_path, "GET", "/a")
    socketserver.UnixStreamServer(str(tmp_path / SOCKET_NAME), _Handler).server_close()
    with pytest.raises(ServerNotRunning):
        ask(tmp_path, "GET", "/a")
