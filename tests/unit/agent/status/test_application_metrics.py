"""Tests of the agent's scraping of an application that may be hostile."""

import asyncio
import contextlib
import gzip
import threading
from collections.abc import AsyncIterator, Callable
from unittest.mock import Mock

import aiohttp
import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from meshwright.agent.status import application_metrics
from meshwright.agent.status.application_metrics import MOST_BYTES, SAY_SECONDS, ApplicationMetrics
from meshwright.agent.status.application_page import ApplicationPage, application_page
from meshwright.agent.status.probes import Probes
from meshwright.agent.status.server import ProxyControl, application

HERE = "127.0.0.1"
SIDECAR = "# TYPE envoy_server_live gauge\nenvoy_server_live 1\n"
PACKED = gzip.compress(b"a 1\n", mtime=0)
FAILED = "meshwright_agent_application_scrapes_failed_total"
DROPPED = "meshwright_agent_application_lines_dropped_total"


@contextlib.asynccontextmanager
async def _served(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, HERE, 0).start()
        yield f"http://{HERE}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def _scraped(answer: Handler) -> AsyncIterator[Callable[[str], asyncio.Future[str]]]:
    """Yield a function that requests a path of an agent beside an application with this handler."""
    beside = web.Application()
    beside.router.add_get("/{path:.*}", answer)
    proxied = Mock(spec=ProxyControl)
    proxied.own_metrics.return_value, proxied.proxy_metrics.return_value = "", SIDECAR
    proxied.not_alive.return_value = ""
    async with (
        _served(beside) as url,
        _served(application(proxied, Probes(), f"{url}/metrics")) as agent,
        aiohttp.ClientSession() as session,
    ):

        async def asked(path: str) -> str:
            async with session.get(agent + path) as response:
                assert response.status == 200
                return await response.text()

        yield lambda path: asyncio.ensure_future(asked(path))


def _series(page: str) -> dict[str, float]:
    """Return the series that are not zero, as read by Prometheus' parser."""
    families = text_string_to_metric_families(page)
    samples = (sample for family in families for sample in family.samples if sample.value)
    return {sample.name + "".join(sample.labels.values()): sample.value for sample in samples}


async def test_redirect_of_the_metrics_page_is_not_followed() -> None:
    """The agent's user is not intercepted.

    A redirect could therefore show pages that the application cannot reach.
    """
    asked: list[str] = []

    async def secret(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(text="secret 1\n")

    victim = web.Application()
    victim.router.add_get("/{path:.*}", secret)
    async with _served(victim) as elsewhere:

        async def answer(_request: web.Request) -> web.Response:
            return web.Response(
                status=302, headers={"Location": f"{elsewhere}/config_dump"}, text="secret 1\n"
            )

        async with _scraped(answer) as get:
            page = await get("/metrics")
    assert asked == []
    assert _series(page) == {"envoy_server_live": 1, f"{FAILED}redirect": 1}
    assert page.splitlines()[-1] == (
        "# meshwright: the application's metrics are left out: "
        "the answer is a redirect (status 302), which is not followed"
    )


@pytest.mark.parametrize("times", [1, 4], ids=["one byte too many", "a bomb"])
@pytest.mark.parametrize("is_packed", [True, False], ids=["gzip", "plain"])
async def test_too_large_metrics_page_is_left_out(times: int, *, is_packed: bool) -> None:
    """A page over 8 MiB after decompression is left out, and the sidecar's own metrics are served."""
    size = MOST_BYTES + 1 if times == 1 else MOST_BYTES * times
    content = b"a" * size
    headers = {"Content-Encoding": "gzip"} if is_packed else {}
    sent = gzip.compress(content, 1) if is_packed else content

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=sent, headers=headers)

    async with _scraped(answer) as get:
        page = await get("/metrics")
    assert _series(page) == {"envoy_server_live": 1, f"{FAILED}too_large": 1}
    assert page.endswith("left out: the page has more than 8 MiB\n")


async def test_endless_metrics_page_is_read_up_to_its_limit() -> None:
    """The connection is closed at the limit, so that little is sent in vain."""
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"a" * 65536)
                sent += 65536
        return response

    async with _scraped(answer) as get:
        assert _series(await get("/metrics"))[f"{FAILED}too_large"] == 1
    assert sent < 4 * MOST_BYTES


async def test_slow_metrics_page_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeout applies to the whole answer, so that a page which arrives in drops is left out too."""
    monkeypatch.setattr(application_metrics, "SECONDS", 0.05)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"a 1\n")
                await asyncio.sleep(0.005)
        return response

    async with _scraped(answer) as get:
        assert _series(await get("/metrics")) == {"envoy_server_live": 1, f"{FAILED}timeout": 1}


@pytest.mark.parametrize(
    ("encoding", "body", "words"),
    [
        ("br", b"a 1\n", "its Content-Encoding is 'br': must be identity or gzip"),
        ("gzip", b"a 1\n", "it is not gzip: "),
        ("gzip", PACKED[:-1], "its gzip is cut short"),
        ("gzip", PACKED + b"b 1\n", "something follows the end of its gzip"),
    ],
    ids=["another", "none", "short", "more"],
)
async def test_unsupported_encoding_is_named(encoding: str, body: bytes, words: str) -> None:
    """The agent requests identity and accepts gzip; the error names any other encoding or damage."""

    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Accept-Encoding"] == "identity"
        return web.Response(body=body, headers={"Content-Encoding": encoding})

    async with _scraped(answer) as get:
        page = await get("/metrics")
    assert _series(page) == {"envoy_server_live": 1, f"{FAILED}unreadable": 1}
    assert f"the page cannot be read: {words}" in page


async def test_valid_lines_are_served_and_the_others_counted() -> None:
    """The application cannot set the sidecar's series, and the dropped lines are counted by reason."""
    lines = b"# TYPE envoy_server_live counter\nenvoy_server_live 0\nmine 1\nmine 2\n<p>\nup 1\n"

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(lines), headers={"Content-Encoding": "gzip"})

    async with _scraped(answer) as get:
        page = await get("/metrics")
    assert _series(page) == {
        "envoy_server_live": 1,
        "mine": 1,
        f"{DROPPED}reserved_name": 3,
        f"{DROPPED}duplicate": 1,
        f"{DROPPED}malformed": 1,
    }
    assert page.splitlines()[-1] == (
        "# meshwright: lines of the application's metrics that are left out: "
        "malformed 1, duplicate 1, reserved_name 3"
    )


async def test_liveness_is_answered_while_a_metrics_page_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long page takes seconds to parse, and meanwhile the kubelet must get its answer."""
    begun, alive = threading.Event(), threading.Event()

    def slowly(content: bytes) -> ApplicationPage:
        begun.set()
        assert alive.wait(30)
        return application_page(content)

    monkeypatch.setattr(application_metrics, "application_page", slowly)

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text="mine 1\n")

    async with _scraped(answer) as get:
        scraping = get("/metrics")
        assert await asyncio.to_thread(begun.wait, 30)
        assert await get("/healthz/live") == "ok\n"
        alive.set()
        assert _series(await scraping) == {"envoy_server_live": 1, "mine": 1}


async def test_concurrent_scrapes_share_one_request() -> None:
    """Concurrent scrapes request one page, so that clients cannot multiply its cost."""
    asked, all_here = 0, asyncio.Event()

    async def answer(_request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        await all_here.wait()
        return web.Response(text="mine 1\n")

    beside = web.Application()
    beside.router.add_get("/metrics", answer)
    async with _served(beside) as url:
        metrics = ApplicationMetrics(f"{url}/metrics")
        waiting = [asyncio.ensure_future(metrics.page()) for _ in range(5)]
        await asyncio.sleep(0)
        all_here.set()
        assert await asyncio.gather(*waiting) == [b"mine 1\n"] * 5
    assert asked == 1


async def test_dropped_lines_are_logged_once_per_interval() -> None:
    """Several scrapes with changing answers cause one log line per interval."""
    now, answers = 0.0, ["up 1\n", "<p>", "up 2\n"]

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=answers.pop(0))

    beside = web.Application()
    beside.router.add_get("/metrics", answer)
    async with _served(beside) as url:
        metrics = ApplicationMetrics(f"{url}/metrics", lambda: now)
        with capture_logs() as logs:
            await metrics.page()
            await metrics.page()
            now += SAY_SECONDS
            await metrics.page()
    line = {"event": "lines of application metrics left out", "log_level": "warning", "url": f"{url}/metrics"}
    assert logs == [{**line, "reserved_name": 1, "first": "up"}] * 2
