"""Tests of the audit log and of the socket's guard, for each route that changes state."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from aiohttp import web

from meshwright.admin.api.mesh import Api
from meshwright.admin.api.routes import add_api
from meshwright.admin.api.tap import add_tap
from meshwright.admin.http.actions import ACTIONS, action
from meshwright.admin.http.audit import EVENT, audited, user_name
from meshwright.admin.http.commands import CommandError, Commands, add_commands, explained
from meshwright.admin.http.commands_guard import guarded
from meshwright.admin.http.log_levels import add_log_levels
from meshwright.admin.http.rebuilding import RebuildCommands, add_rebuild_commands
from meshwright.admin.http.roots import add_roots
from meshwright.admin.http.servers import SOCKET_NAME, serving, unix_socket
from meshwright.admin.http.state import StateCommands, add_state_commands
from meshwright.admin.http.tokens import TokenCommands, add_token_commands
from meshwright.admin.pages import routes, site
from meshwright.controller.process.levels import KEPT, LogLevels
from tests.unit.conftest import NOW

NOTHING: Any = None
TRIED = {("POST", "/api/v1/try"), ("POST", "/debug/try")}
"""What is posted and changes nothing."""


def whole() -> web.Application:
    """Return all routes of the socket, as `controller.doors` adds them, without a server behind them."""
    app = web.Application()
    site.add_pages(app, routes.pages(NOTHING, lambda: NOW, NOTHING), lambda: NOW)
    add_tap(app, NOTHING, NOTHING)
    add_api(app, Api(NOTHING, lambda: NOW, NOTHING))
    add_log_levels(LogLevels(), app)
    add_commands(app, Commands(NOTHING, NOTHING, NOTHING, NOTHING))
    add_rebuild_commands(app, RebuildCommands(NOTHING, NOTHING))
    add_roots(app, NOTHING, "")
    add_token_commands(app, TokenCommands(NOTHING, NOTHING, NOTHING))
    add_state_commands(app, StateCommands(NOTHING))
    return app


def test_every_changing_route_is_a_named_action() -> None:
    """Every route that changes state is in `ACTIONS`, because the audit log and the guard use this list."""
    changing = {
        (route.method, route.resource.canonical)
        for route in whole().router.routes()
        if route.resource is not None and route.method not in ("GET", "HEAD", "OPTIONS")
    }
    assert changing - TRIED == {item for item in ACTIONS if item[0] != "GET"}


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[tuple[aiohttp.ClientSession, list[str]]]:
    """Serve all actions on a socket; yield a client and the list of paths that were carried out."""
    done = list[str]()

    async def act(request: web.Request) -> web.Response:
        done.append(request.path)
        body = await request.read()
        if b"impossible" in body:
            raise CommandError("it cannot be done")
        if b"broken" in body:
            raise KeyError("ours")
        return web.json_response({})

    app = web.Application(middlewares=[audited, guarded, explained])
    for method, path in ACTIONS:
        app.router.add_route(method, path, act)
    at = tmp_path / SOCKET_NAME
    connector = aiohttp.UnixConnector(str(at))
    async with (
        serving(app, unix_socket(at)),
        aiohttp.ClientSession("http://localhost", connector=connector) as session,
    ):
        yield session, done


FOREIGN = [
    ({"Host": "evil.example"}, 421),
    ({"Host": "localhost.evil.example:9000"}, 421),
    ({"Host": "localhost:9000", "Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "http://localhost:1234", "Host": "localhost:9000"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403),
]
FORMS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]


@pytest.mark.parametrize(("method", "path"), ACTIONS)
async def test_request_of_another_site_is_refused_and_logged(
    asked: tuple[aiohttp.ClientSession, list[str]], method: str, path: str
) -> None:
    """A foreign host, a foreign origin or a form's media type is refused before the action.

    Each attempt is logged.
    """
    session, done = asked
    with structlog.testing.capture_logs() as logs:
        for headers, status in FOREIGN:
            answer = {"Content-Type": "application/json", **headers}
            async with session.request(method, path, data=b"{}", headers=answer) as response:
                assert response.status == status, headers
        for content_type in FORMS if method == "POST" else ():
            headers = {"Content-Type": content_type}
            async with session.request(method, path, data=b"{}", headers=headers) as response:
                assert response.status == 415, content_type
    assert done == []
    assert {(log["event"], log["result"]) for log in logs} == {(EVENT, "refused")}
    assert len(logs) == len(FOREIGN) + (len(FORMS) if method == "POST" else 0)


@pytest.mark.parametrize(("method", "path"), ACTIONS)
@pytest.mark.parametrize("headers", [{}, {"Host": "127.0.0.1:9000"}, {"Sec-Fetch-Site": "same-origin"}])
async def test_local_program_may_act(
    asked: tuple[aiohttp.ClientSession, list[str]], method: str, path: str, headers: dict[str, str]
) -> None:
    """Negative control: requests like those of the command line, and of the same origin, are carried out."""
    session, done = asked
    answer = {"Content-Type": "application/json", **headers}
    async with session.request(method, path, data=b"{}", headers=answer) as response:
        assert response.status == 200
    assert done == [path]


async def test_action_is_one_event_with_user_object_and_result(
    asked: tuple[aiohttp.ClientSession, list[str]],
) -> None:
    """The kernel gives the user of the peer, and only fields that identify the object are logged."""
    session, _ = asked
    who = {"user": user_name(os.geteuid()), "uid": os.geteuid(), "gid": os.getegid(), "pid": os.getpid()}
    body = {"serial": "ab", "reason": "stolen", "other": "x", "secret": "y"}
    with structlog.testing.capture_logs() as logs:
        await session.post("/certs/revoke", json=body)
        await session.post("/certs/revoke", json={"serial": "impossible"})
        await session.post("/certs/revoke", json={"serial": "broken"})
    event = {"event": EVENT, "log_level": "info", "action": "revoke proxy certificate", **who}
    ours = [log for log in logs if log["event"] == EVENT]
    assert ours == [
        {**event, "object": {"serial": "ab", "reason": "stolen"}, "result": "done", "status": 200},
        {
            **event,
            "object": {"serial": "impossible"},
            "result": "refused",
            "status": 400,
            "error": "it cannot be done",
        },
        {**event, "object": {"serial": "broken"}, "result": "failed", "status": 500},
    ]


@pytest.mark.parametrize(
    ("method", "path", "said", "expected"),
    [
        ("POST", "/certs/rotate-root", {}, ("begin or continue root change", {})),
        ("POST", "/certs/rotate-root", {"abort": True}, ("abort root change", {})),
        (
            "POST",
            "/certs/rotate-root",
            {"give_up": ["a.b.c"]},
            ("wait no longer for proxies", {"give_up": ["a.b.c"]}),
        ),
        ("POST", "/certs/tokens/revoke", {"token": "0" * 12}, ("withdraw join token", {"id": "0" * 12})),
        ("POST", "/state/export", {"passphrase": "6162"}, ("export state of the mesh", {})),
        ("POST", "/logging", {"logger": "x", "level": None}, ("set log level", {"logger": "x"})),
        ("POST", "/certs/revoke", ["no", "object"], ("revoke proxy certificate", {})),
        (
            "POST",
            "/certs/revoke",
            {"serial": "a" * 9999},
            ("revoke proxy certificate", {"serial": "a" * 300}),
        ),
        (
            "POST",
            "/certs/rebuild-ledger",
            {"serials": [str(n) for n in range(50)]},
            (
                "confirm proxy certificates",
                {"serials": [*(str(n) for n in range(20)), "and 30 more"]},
            ),
        ),
        ("GET", "/api/v1/tap", {"service": "shop/pay"}, ("watch requests", {"service": "shop/pay"})),
        ("GET", "/debug/config", {}, None),
        ("POST", "/api/v1/try", {"manifests": "x"}, None),
    ],
)
def test_actions_are_named_by_method_path_and_body(
    method: str, path: str, said: object, expected: object
) -> None:
    """Each action has a name and a bounded description of its object.

    Requests that change nothing have none.
    """
    assert action(method, path, said) == expected


async def test_action_with_an_unreadable_body_is_logged_without_an_object(
    asked: tuple[aiohttp.ClientSession, list[str]],
) -> None:
    """A body that is not JSON, or too deep or too long, is logged as an action without an object."""
    session, _ = asked
    headers = {"Content-Type": "application/json"}
    with structlog.testing.capture_logs() as logs:
        for body in (b"\xff", b"[" * 100_000, json.dumps({"a": "b" * 300_000}).encode()):
            await session.post("/certs/revoke", data=body, headers=headers)
    assert [log["object"] for log in logs if log["event"] == EVENT] == [{}] * 3


def test_level_of_the_audit_log_cannot_be_changed() -> None:
    """The audit log's level cannot be set over the socket, so that no action goes unlogged."""
    with pytest.raises(ValueError, match="administrative actions are logged at every level"):
        LogLevels().set_level(KEPT, "error")
