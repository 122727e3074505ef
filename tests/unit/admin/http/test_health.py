"""Health and metrics answer from a thread of their own."""

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


def test_the_paths_answer() -> None:
    """A healthy server is alive, ready, has a version and metrics that Prometheus can read."""
    with _serving(Health(lambda: True, lambda: ())) as get:
        assert get("/healthz/live") == (200, "alive\n")
        assert get("/healthz/ready") == (200, "ready\n")
        assert json.loads(get("/version")[1]) == {"version": "1"}
        status, text = get("/metrics")
        assert status == 200
        assert list(text_string_to_metric_families(text))


def test_readiness_names_what_it_waits_for() -> None:
    """A probe that fails says why."""
    with _serving(Health(lambda: True, lambda: ("first read", "ADS"))) as get:
        assert get("/healthz/ready") == (503, "waiting for: first read, ADS\n")
        assert get("/healthz/live")[0] == 200


def test_liveness_turns_red_while_the_main_loop_is_held_and_green_when_it_turns_again() -> None:
    """The thread answers although nothing beats: the negative control is the beat that follows."""
    now = 0.0
    heartbeat = Heartbeat(lambda: now, limit=10.0)
    with _serving(Health(heartbeat.alive, lambda: ())) as get:
        assert get("/healthz/live")[0] == 200
        now = 11.0
        assert get("/healthz/live") == (503, "the event loop is blocked\n")
        assert get("/healthz/ready")[0] == 503
        heartbeat.beat()
        assert get("/healthz/live")[0] == 200


async def test_a_really_blocked_loop_turns_liveness_red_and_one_that_turns_again_green() -> None:
    """This very loop is held by requests that it makes without awaiting, and the thread answers them."""
    heartbeat = Heartbeat(time.monotonic, limit=0.2)
    with _serving(Health(heartbeat.alive, lambda: ())) as get:
        task = asyncio.create_task(beating(heartbeat, time.monotonic, period=0.01))
        while get("/healthz/live")[0] == 200:  # the task cannot beat: nothing here awaits
            pass
        async with asyncio.timeout(60):
            while (await asyncio.to_thread(get, "/healthz/live"))[0] != 200:
                pass
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_a_port_in_use_is_an_error_at_once() -> None:
    """Binding happens before the thread, in the caller's hands."""
    with listening(HostPort("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        listening(HostPort("127.0.0.1", taken.getsockname()[1]))


def test_an_application_that_cannot_be_built_is_raised_by_start() -> None:
    """The thread's error comes out where it can be reported."""

    def broken() -> None:
        raise RuntimeError("no application")

    server = HttpThread(broken, listening(HostPort("127.0.0.1", 0)))  # type: ignore[arg-type] # broken on purpose
    with pytest.raises(RuntimeError, match="no application"):
        server.start()
    server.stop()


def test_a_remark_does_not_make_it_unready() -> None:
    """It is said to whoever looks; what is waited for says so alone."""
    remarks = ("the disk is full", "the clock is behind")
    with _serving(Health(lambda: True, lambda: (), lambda: remarks)) as get:
        assert get("/healthz/ready") == (200, "ready\nbut: the disk is full\nbut: the clock is behind\n")
    with _serving(Health(lambda: True, lambda: ("first read",), lambda: remarks)) as get:
        assert get("/healthz/ready") == (503, "waiting for: first read\n")
