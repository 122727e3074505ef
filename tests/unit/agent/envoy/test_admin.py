"""Tests of Envoy's admin interface: the check that the agent's own Envoy answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from meshwright.agent.envoy import admin as admin_module
from meshwright.agent.envoy.admin import AdminUnreachable, AnotherEnvoy, AnswerTooLarge, EnvoyAdmin
from meshwright.mesh.host_port import HostPort
from tools.ports import free_port

OURS, THEIRS = Path("/run/meshwright/bootstrap.json"), Path("/run/other/bootstrap.json")


@asynccontextmanager
async def _answering(bootstrap: Path, asked: list[str]) -> AsyncIterator[EnvoyAdmin]:
    """Serve an Envoy with the given bootstrap; yield a client for ours, and record its requests."""

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path}")
        options = {"config_path": str(bootstrap), "restart_epoch": 3}
        return web.json_response({"state": "LIVE", "command_line_options": options})

    async with _served(answer) as admin:
        yield admin


@asynccontextmanager
async def _served(answer: Handler) -> AsyncIterator[EnvoyAdmin]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    address = HostPort("127.0.0.1", free_port("127.0.0.1"))
    try:
        await web.TCPSite(runner, address.host, address.port).start()
        async with EnvoyAdmin(address, OURS) as admin:
            yield admin
    finally:
        await runner.cleanup()


async def test_own_envoy_is_recognised_by_its_bootstrap() -> None:
    """An Envoy with our bootstrap file is our own, and its answers are used."""
    asked: list[str] = []
    async with _answering(OURS, asked) as admin:
        assert await admin.live_epoch() == 3
        assert (await admin.server_info())["state"] == "LIVE"
        await admin.text("/drain_listeners", "POST")
    assert asked[-1] == "POST /drain_listeners"


async def test_another_envoy_gets_no_command() -> None:
    """Another Envoy gets only `GET /server_info`, because a command would drain it.

    The error names both files and the next step.
    """
    asked: list[str] = []
    async with _answering(THEIRS, asked) as admin:
        assert await admin.live_epoch() is None
        for asking in (
            admin.text("/drain_listeners", "POST"),
            admin.json("/config_dump"),
            admin.server_info(),
        ):
            with pytest.raises(
                AnotherEnvoy,
                match=f"{THEIRS} instead of {OURS}; give each proxy on this machine its own --admin$",
            ):
                await asking
    assert {*asked} == {"GET /server_info"}
    assert issubclass(AnotherEnvoy, AdminUnreachable)


@pytest.mark.parametrize(
    ("body", "charset"),
    [(b"\xff\xfe\x80", None), (b"00", "hex"), (b"[" * 200_000, None), (b'{"command_line_options": 1}', None)],
)
async def test_unreadable_answer_is_an_unreachable_admin_interface(body: bytes, charset: str | None) -> None:
    """An unreadable answer raises AdminUnreachable and no other error.

    Examples are bytes that are not text, an unknown charset and too deep JSON.
    """

    async def answer(_request: web.Request) -> web.Response:
        kind = "application/json" + (f"; charset={charset}" if charset else "")
        return web.Response(body=body, headers={"Content-Type": kind})

    async with _served(answer) as admin:
        with pytest.raises(AdminUnreachable):
            await admin.server_info()
        assert await admin.live_epoch() is None


async def test_too_long_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer over the limit raises an error, so that a large answer cannot exhaust the agent's memory."""
    monkeypatch.setattr(admin_module, "MOST_BYTES", 1000)

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text="a" * 1001)

    async with _served(answer) as admin:
        with pytest.raises(
            AnswerTooLarge, match="GET /server_info: the answer is not taken: it has more than 1000"
        ):
            await admin.server_info()


async def test_redirect_of_the_admin_interface_is_not_followed() -> None:
    """A redirect is an error, because a program in Envoy's place could lead the agent to another address."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async with _served(answer) as admin:
        with pytest.raises(AdminUnreachable, match="status 302"):
            await admin.server_info()
    assert asked == ["/server_info"]


async def test_unix_socket_is_used_like_a_port(tmp_path: Path) -> None:
    """The same requests work over a Unix socket; the error without a listener names the socket."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path}")
        return web.json_response({"state": "LIVE", "command_line_options": {"config_path": str(OURS)}})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    path = tmp_path / "admin.sock"
    async with EnvoyAdmin(path, OURS) as admin:
        with pytest.raises(
            AdminUnreachable, match=f"the admin interface of Envoy at {path} does not answer: "
        ):
            await admin.server_info()
        try:
            await web.UnixSite(runner, path).start()
            assert await admin.live_epoch() == 0
            await admin.text("/drain_listeners", "POST")
        finally:
            await runner.cleanup()
    assert asked == ["GET /server_info", "GET /server_info", "POST /drain_listeners"]
