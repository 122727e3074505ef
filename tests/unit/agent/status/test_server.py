"""Tests of the agent's status server and of its clients."""

import http.client
import json
import threading
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from meshwright.agent.reach.connection_watch import ConnectionState
from meshwright.agent.status.client import AgentSilent, status_of
from meshwright.agent.status.description import described
from meshwright.agent.status.readiness_wait import until_ready
from meshwright.agent.status.server import from_here
from meshwright.mesh.host_port import HostPort


class _Server(HTTPServer):
    """Fake agent that gives one answer after the other, and repeats the last one."""

    answers: list[tuple[int, str]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Send the next answer."""
        answers = self.server.answers
        status, words = answers.pop(0) if len(answers) > 1 else answers[0]
        assert self.path == (
            "/healthz/status" if words.startswith("{") or status == 403 else "/healthz/ready"
        )
        self.send_response(status)
        self.end_headers()
        self.wfile.write(words.encode())

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[_Server]:
    """Serve the fake agent at a port of this machine."""
    with _Server(("127.0.0.1", 0), _Handler) as made:
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield made
        made.shutdown()


AT = HostPort("127.0.0.1", 1)
STATUS: dict[str, Any] = {
    **described((AT,), (), (), None, ConnectionState(has_it=True, since=datetime.now(UTC)))
}
FIELDS = [
    (part, field)
    for part, fields in (("", STATUS), *((name, item) for name, item in STATUS.items()))
    if isinstance(fields, dict)
    for field in fields
    if field != "servers"  # missing in the answers of agents before 0.3, which have one server
]


@pytest.mark.parametrize(("part", "field"), FIELDS)
def test_status_without_a_field_is_refused(server: _Server, part: str, field: str) -> None:
    """A status without any one of its fields is refused, because it comes from another version or program."""
    at, page = HostPort("127.0.0.1", server.server_port), deepcopy(STATUS)
    server.answers = [(200, json.dumps(page))]
    assert status_of(at) == page
    del (page[part] if part else page)[field]
    server.answers = [(200, json.dumps(page))]
    with pytest.raises(AgentSilent, match=f"^unexpected answer of the agent at .* has no field `{field}`"):
        status_of(at)


NOT_YET = (503, "Envoy is INITIALIZING\nlisteners have not been received\n")


def _waited(server: _Server, seconds: float, name: str = "") -> tuple[str, float]:
    """Wait with a clock that only pauses advance; return the message and the elapsed seconds."""
    now = 0.0

    def pause(more: float) -> None:
        nonlocal now
        now += more

    return until_ready(HostPort("127.0.0.1", server.server_port), seconds, name, lambda: now, pause), now


def test_agent_is_polled_until_it_is_ready(server: _Server) -> None:
    """Polling ends with the first ready answer."""
    server.answers = [NOT_YET, NOT_YET, (200, "ok\n")]
    words, waited = _waited(server, 60)
    assert words == ""
    assert waited == pytest.approx(0.4)


def test_timeout_reports_the_last_answer(server: _Server) -> None:
    """After the timeout the message has the reasons of the last answer."""
    server.answers = [(503, "Envoy is PRE_INITIALIZING\n"), NOT_YET]
    words, waited = _waited(server, 1)
    assert words == "Envoy is INITIALIZING; listeners have not been received"
    assert waited == pytest.approx(1)


def test_request_timeout_is_bounded_by_the_remaining_time(
    server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request's timeout is the remaining time, but at least 1 s and at most 10 s."""
    allowed = list[float]()

    class Connection(http.client.HTTPConnection):
        def __init__(self, host: str, port: int, *, timeout: float) -> None:
            allowed.append(timeout)
            super().__init__(host, port, timeout=30)

    monkeypatch.setattr(http.client, "HTTPConnection", Connection)
    server.answers = [(200, "ok\n"), (200, '{"proxy": "b.buyer.shop"}')] * 100
    _waited(server, 10.4, "a.store.shop")
    ready, whose = allowed[::2], allowed[1::2]
    assert ready == whose
    assert ready[:4] == pytest.approx([10, 10, 10, 9.8])
    assert ready[-6:] == pytest.approx([1] * 6)
    allowed.clear()
    server.answers = [NOT_YET]
    assert _waited(server, 0)[0] == "Envoy is INITIALIZING; listeners have not been received"
    assert allowed == [1]


def test_agent_of_another_proxy_does_not_count_as_ready(server: _Server) -> None:
    """The wait continues until the right proxy answers.

    After the timeout the message names the other proxy.
    """
    ready, other, own = (200, "ok\n"), (200, '{"proxy": "b.buyer.shop"}'), (200, '{"proxy": "a.store.shop"}')
    server.answers = [ready, other, ready, own]
    words, waited = _waited(server, 60, "a.store.shop")
    assert (words, waited) == ("", 0.2)
    server.answers = [ready, other]
    words, _ = _waited(server, 0, "a.store.shop")
    assert words.endswith("serves b.buyer.shop, not a.store.shop")
    server.answers = [ready, (403, "only from this machine\n")]
    words, _ = _waited(server, 0, "a.store.shop")
    assert words.endswith("serves another proxy, not a.store.shop")


@pytest.mark.parametrize(
    ("remote", "headers", "status"),
    [
        ("127.0.0.1", {"Host": "127.0.0.1:15020"}, 200),
        ("::1", {"Host": "[::1]:15020"}, 200),
        ("::ffff:127.0.0.1", {"Host": "localhost:15020"}, 200),
        ("10.0.0.9", {"Host": "127.0.0.1:15020"}, 403),
        ("2001:db8::9", {"Host": "localhost:15020"}, 403),
        ("::ffff:10.0.0.9", {"Host": "localhost:15020"}, 403),
        ("127.0.0.1", {"Host": "evil.example:15020"}, 403),
        ("127.0.0.1", {"Host": "10.0.0.1:15020"}, 403),
        ("127.0.0.1", {"Host": "localhost:15020", "Origin": "http://localhost:15020"}, 403),
    ],
)
async def test_proxy_is_ended_only_from_its_own_machine(
    remote: str, headers: dict[str, str], status: int
) -> None:
    """Neither another machine nor a web page in a browser of this machine can drain or end a proxy."""

    async def ended(_: web.Request) -> web.StreamResponse:
        return web.Response()

    request = make_mocked_request("POST", "/quitquitquit", headers=headers).clone(remote=remote)
    assert (await from_here(ended)(request)).status == status
