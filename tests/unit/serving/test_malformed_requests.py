"""Tests of our HTTP servers with malformed requests: the log has one line for each kind and period."""

import asyncio
import logging
import re
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiohttp import web

from meshwright.admin.http.health import Health, application
from meshwright.admin.http.servers import SOCKET_NAME, serving, unix_socket
from meshwright.admin.metrics.registry import Metrics
from meshwright.admin.pages import site
from meshwright.serving.request_errors import FAILED_AGAIN, RequestErrors
from tests.unit.conftest import NOW

ROOT = Path(__file__).resolve().parents[3]
MALFORMED = (
    b"GET / HTTP/1.1\r\nHost: h\r\nbad header\r\n\r\n",
    b"GET / HTTP/9\r\n\r\n",
    b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"GET http://[ HTTP/1.1\r\nHost: h\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)
SECRET = b"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer very-private\x00\r\n\r\n"


def health() -> web.Application:
    """Return the application for probes and metrics."""
    return application(Health(lambda: True, tuple), Metrics(), {"version": "1"})


def pages() -> web.Application:
    """Return the application with the debug pages."""
    return site.application((), (), lambda: NOW)


def echo() -> web.Application:
    """Return an application that reads request bodies, as the commands and webhooks do."""

    async def read(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    app = web.Application()
    app.router.add_post("/", read)
    return app


async def send(at: Path, request: bytes) -> bytes:
    """Send bytes on a new connection, and return the answer until the connection ends."""
    reader, writer = await asyncio.open_unix_connection(str(at))
    writer.write(request)
    writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 20)
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("made", [health, pages, echo])
async def test_malformed_requests_are_logged_once_for_each_kind(
    made: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Twenty rounds of malformed requests give one line for each kind and one count, without traceback."""
    at = tmp_path / SOCKET_NAME
    with structlog.testing.capture_logs() as logs, caplog.at_level(logging.INFO):
        async with serving(made(), unix_socket(at)):
            for _ in range(20):
                for item in MALFORMED:
                    await send(at, item)
    assert [record.message for record in caplog.records] == []
    kinds = {log["reason"] for log in logs}
    assert {log["event"] for log in logs} == {"unreadable requests"}
    assert len(logs) == 2 * len(kinds)
    assert sum(log["count"] for log in logs) == 20 * len(MALFORMED)


async def test_truncated_body_is_no_error_of_the_handler(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A body that is cut short, or not encoded as announced, gives no traceback."""
    at = tmp_path / SOCKET_NAME
    bodies = (
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    )
    with structlog.testing.capture_logs() as logs, caplog.at_level(logging.INFO):
        async with serving(echo(), unix_socket(at)):
            for item in bodies * 5:
                await send(at, item)
    assert [record.message for record in caplog.records] == []
    assert {log["event"] for log in logs} <= {"unreadable requests"}
    assert all("exc_info" not in log for log in logs)


async def test_bytes_of_a_malformed_request_are_not_logged(tmp_path: Path) -> None:
    """The client may have made a mistake in a request with credentials."""
    at = tmp_path / SOCKET_NAME
    with structlog.testing.capture_logs() as logs:
        async with serving(echo(), unix_socket(at)):
            await send(at, SECRET)
    assert logs
    assert "very-private" not in repr(logs)


async def test_only_the_first_exception_of_a_handler_has_a_traceback(tmp_path: Path) -> None:
    """An error of ours is logged in full once, and then counted."""

    async def broken(_: web.Request) -> web.Response:
        raise KeyError("ours")

    app = web.Application()
    app.router.add_get("/", broken)
    at = tmp_path / SOCKET_NAME
    with structlog.testing.capture_logs() as logs:
        async with serving(app, unix_socket(at)):
            for _ in range(10):
                await send(at, b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    first, again = logs
    assert isinstance(first["exc_info"], KeyError)
    assert again["event"] == FAILED_AGAIN
    assert again["count"] == 9
    assert again["error"].startswith("KeyError in test_malformed_requests.py:")


async def test_counts_are_logged_at_the_end_of_a_period_without_a_further_request() -> None:
    """A flood that has stopped is still counted."""
    with structlog.testing.capture_logs() as logs:
        errors = RequestErrors(structlog.get_logger("t"), seconds=0.01)
        for _ in range(5):
            errors.exception("Error handling request from %s", "10.0.0.1", exc_info=ConnectionResetError())
        async with asyncio.timeout(20):
            while len(logs) < 2:
                await asyncio.sleep(0)
    assert [(log["reason"], log["count"]) for log in logs] == [
        ("connection-reset-error", 1),
        ("connection-reset-error", 4),
    ]
    assert logs[0]["client"] == "10.0.0.1"


def test_only_the_serving_package_creates_runners() -> None:
    """Every server of ours thereby has the limited error log.

    The servers are the agent, the node's daemon, the document driver and the control plane.
    """
    made = re.compile(r"\bAppRunner\(|\bServerRunner\(|\brun_app\(")
    result = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "meshwright").rglob("*.py")
        if made.search(path.read_text("utf-8"))
    }
    assert result == {"meshwright/serving/runners.py"}
