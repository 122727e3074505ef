"""Tests of health and metrics, which are served by a separate thread."""

import asyncio
import contextlib
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from prometheus_client.parser import text_string_to_metric_families

from meshwright.admin.http.health import Health, HttpThread, application
from meshwright.admin.http.heartbeat import Heartbeat, beating
from meshwright.admin.metrics.registry import Metrics
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import listening


@contextmanager
def _serving(health: Health) -> Iterator[Callable[[str], tuple[int, str]]]:
    server = HttpThread(
        lambda: application(health, Metrics(), {"version": "1"}), listening(HostPort("127.0.0.1", 0))
    )
    port = server.port
    server.start()

    def get(path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    try:
        yield get
    finally:
        server.stop()


def test_healthy_server_answers_all_paths() -> None:
    """A healthy server is alive and ready, and serves its version and metrics that Prometheus can parse."""
    with _serving(Health(lambda: True, lambda: ())) as get:
        assert get("/healthz/live") == (200, "alive\n")
        assert get("/healthz/ready") == (200, "ready\n")
        assert json.loads(get("/version")[1]) == {"version": "1"}
        status, text = get("/metrics")
        assert status == 200
        assert list(text_string_to_metric_families(text))


def test_readiness_names_the_missing_conditions() -> None:
    """A failed readiness probe lists the conditions that the server waits for; liveness stays good."""
    with _serving(Health(lambda: True, lambda: ("first read", "ADS"))) as get:
        assert get("/healthz/ready") == (503, "waiting for: first read, ADS\n")
        assert get("/healthz/live")[0] == 200


def test_liveness_fails_without_heartbeats_and_recovers_with_the_next() -> None:
    """The thread answers although the loop is blocked; the next heartbeat is the negative control."""
    now = 0.0
    heartbeat = Heartbeat(lambda: now, limit=10.0)
    with _serving(Health(heartbeat.alive, lambda: ())) as get:
        assert get("/healthz/live")[0] == 200
        now = 11.0
        assert get("/healthz/live") == (503, "the event loop is blocked\n")
        assert get("/healthz/ready")[0] == 503
        heartbeat.beat()
        assert get("/healthz/live")[0] == 200


async def test_liveness_fails_while_the_event_loop_is_blocked() -> None:
    """The test blocks its own loop with synchronous requests.

    Liveness fails, and recovers when the loop runs again.
    """
    heartbeat = Heartbeat(time.monotonic, limit=0.2)
    with _serving(Health(heartbeat.alive, lambda: ())) as get:
        task = asyncio.create_task(beating(heartbeat, time.monotonic, period=0.01))
        while get("/healthz/live")[0] == 200:  # no await, so the task cannot run
            pass
        async with asyncio.timeout(60):
            while (await asyncio.to_thread(get, "/healthz/live"))[0] != 200:
                pass
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_port_in_use_is_an_error_of_bind() -> None:
    """A port in use raises OSError in the caller, because the socket is bound before the thread starts."""
    with listening(HostPort("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        listening(HostPort("127.0.0.1", taken.getsockname()[1]))


def test_failing_application_raises_from_start() -> None:
    """An error in building the application is raised by `start`, where it can be reported."""

    def broken() -> None:
        raise RuntimeError("no application")

    server = HttpThread(broken, listening(HostPort("127.0.0.1", 0)))  # type: ignore[arg-type] # broken on purpose
    with pytest.raises(RuntimeError, match="no application"):
        server.start()
    server.stop()


def test_remark_does_not_make_the_server_unready() -> None:
    """Remarks are added to a ready answer; an unready answer lists only the missing conditions."""
    remarks = ("the disk is full", "the clock is behind")
    with _serving(Health(lambda: True, lambda: (), lambda: remarks)) as get:
        assert get("/healthz/ready") == (200, "ready\nbut: the disk is full\nbut: the clock is behind\n")
    with _serving(Health(lambda: True, lambda: ("first read",), lambda: remarks)) as get:
        assert get("/healthz/ready") == (503, "waiting for: first read\n")
