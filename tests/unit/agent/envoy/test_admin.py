"""Whose Envoy answers at the admin's port."""

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
    """Answer as an Envoy that runs with a bootstrap; yield a client for ours, and note what is asked."""

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


async def test_our_own_is_believed() -> None:
    """It says so itself, by the file that it runs with."""
    asked: list[str] = []
    async with _answering(OURS, asked) as admin:
        assert await admin.live_epoch() == 3
        assert (await admin.server_info())["state"] == "LIVE"
        await admin.text("/drain_listeners", "POST")
    assert asked[-1] == "POST /drain_listeners"


async def test_another_is_neither_believed_nor_told_anything() -> None:
    """It would be drained in our place; both files are named, and what is to be done."""
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
async def test_what_any_other_service_answers_is_no_answer_of_ours(body: bytes, charset: str | None) -> None:
    """Bytes that are no text, a charset that is none, JSON without a bottom: said, and nothing ends of it."""

    async def answer(_request: web.Request) -> web.Response:
        kind = "application/json" + (f"; charset={charset}" if charset else "")
        return web.Response(body=body, headers={"Content-Type": kind})

    async with _served(answer) as admin:
        with pytest.raises(AdminUnreachable):
            await admin.server_info()
        assert await admin.live_epoch() is None


async def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that counts more than the agent can hold does not end the agent."""
    monkeypatch.setattr(admin_module, "MOST_BYTES", 1000)

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text="a" * 1001)

    async with _served(answer) as admin:
        with pytest.raises(
            AnswerTooLarge, match="GET /server_info: the answer is not taken: it has more than 1000"
        ):
            await admin.server_info()


async def test_a_redirect_leads_to_nobody_else() -> None:
    """Whoever took Envoy's place cannot have the agent ask another."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async with _served(answer) as admin:
        with pytest.raises(AdminUnreachable, match="status 302"):
            await admin.server_info()
    assert asked == ["/server_info"]


async def test_a_socket_is_asked_as_a_port_is(tmp_path: Path) -> None:
    """It is the same interface; where nobody listens, the socket is named."""
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
