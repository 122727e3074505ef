"""Tests of the notifications to a service manager, at a socket like its own."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from meshwright.controller.process import service_manager
from meshwright.controller.process.service_manager import (
    ServiceManager,
    sentence,
    socket_address,
    watchdog_seconds,
)


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """Yield the listening socket of a manager and its name in the environment."""
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(name if request.param == "path" else "\0" + name[1:])
        listening.setblocking(False)
        yield listening, name if request.param == "path" else "@" + name[1:]


def _told(listening: socket.socket) -> Iterator[str]:
    """Yield the received datagrams."""
    while True:
        try:
            yield listening.recv(4096).decode()
        except BlockingIOError:
            return


def _grown(told: list[str], listening: socket.socket) -> list[str]:
    told.extend(_told(listening))
    return told


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def _beside(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    yield
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_readiness_is_sent_once_and_the_status_at_each_change(
    manager: tuple[socket.socket, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """READY is sent once, because a service stays ready for its manager.

    The socket can have a path or an abstract name.
    """
    monkeypatch.setattr(service_manager, "SOON_SECONDS", 0.005)
    monkeypatch.setattr(service_manager, "LATER_SECONDS", 0.005)
    listening, name = manager
    missing, remarks, messages = ["first\nread", "drivers"], ["no room"], list[str]()

    async def lacking() -> tuple[str, ...]:
        return tuple(missing)

    subject = ServiceManager.from_environment({"NOTIFY_SOCKET": name})
    async with _beside(subject.followed(lacking, lambda: tuple(remarks))):
        await _until(lambda: "STATUS=not ready: no room, first read, drivers" in _grown(messages, listening))
        with subject.reloading():
            pass  # not ready, so no READY may be sent
        missing.clear()
        await _until(lambda: "STATUS=ready; but: no room" in _grown(messages, listening))
        missing.append("a driver")
        await _until(lambda: "STATUS=not ready: no room, a driver" in _grown(messages, listening))
        missing.clear()
        remarks.clear()
        await _until(lambda: "STATUS=ready" in _grown(messages, listening))
        subject.stopping()
        subject.stopping()
        missing.append("an end")
        messages.extend(_told(listening))
    assert messages == [
        "STATUS=not ready: no room, first read, drivers",
        "READY=1",
        "STATUS=ready; but: no room",
        "STATUS=not ready: no room, a driver",
        "STATUS=ready",
        "STOPPING=1\nSTATUS=stopping",
    ]


async def test_reload_is_sent_with_its_time_and_its_end(
    manager: tuple[socket.socket, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """RELOADING is sent with its monotonic time, and READY afterwards, also after a failed reload."""
    listening, name = manager
    messages = list[str]()

    async def nothing() -> tuple[str, ...]:
        return ()

    subject = ServiceManager.from_environment({"NOTIFY_SOCKET": name})
    async with _beside(subject.followed(nothing, tuple)):
        await _until(lambda: "STATUS=ready" in _grown(messages, listening))
        before = time.monotonic_ns() // 1000
        with pytest.raises(ZeroDivisionError), subject.reloading():
            raise ZeroDivisionError
        reloading, ready = _told(listening)
        first, second = reloading.splitlines()
        assert (first, ready) == ("RELOADING=1", "READY=1")
        assert before <= int(second.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000


async def test_watchdog_is_fed_only_by_a_running_loop(
    manager: tuple[socket.socket, str],
) -> None:
    """A blocked loop and a process without heartbeats send no WATCHDOG datagram."""
    listening, name = manager
    alive = True
    environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(os.getpid())}
    subject = ServiceManager.from_environment(environment)
    async with _beside(subject.fed(lambda: alive)):
        fed = list[str]()
        await _until(lambda: len(_grown(fed, listening)) >= 3)
        [*_told(listening)]
        time.sleep(0.1)  # noqa: ASYNC251 - what holds the loop
        assert [*_told(listening)] == []
        await _until(lambda: "WATCHDOG=1" in _told(listening))
        alive = False
        await asyncio.sleep(0)
        [*_told(listening)]
        await asyncio.sleep(0.05)
        assert [*_told(listening)] == []


async def test_notification_that_found_no_room_is_sent_again(
    manager: tuple[socket.socket, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full socket does not block the server; READY and the status are sent when there is room."""
    monkeypatch.setattr(service_manager, "SOON_SECONDS", 0.005)
    listening, name = manager
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as flooding:
        flooding.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                flooding.sendto(b"X=1", socket_address(name) or "")
    asked = 0

    async def nothing() -> tuple[str, ...]:
        nonlocal asked
        asked += 1
        return ()

    async with _beside(ServiceManager.from_environment({"NOTIFY_SOCKET": name}).followed(nothing, tuple)):
        await _until(lambda: asked >= 3)
        assert {*_told(listening)} == {"X=1"}
        messages = list[str]()
        await _until(lambda: "STATUS=ready" in _grown(messages, listening))
    assert messages == ["READY=1", "STATUS=ready"]


def test_variables_of_the_service_manager_are_removed() -> None:
    """Child processes must not inherit them, because the manager would take a child for the service."""
    environment = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "HOME": "/"}
    assert ServiceManager.from_environment(environment).listens
    assert environment == {"HOME": "/"}
    assert not ServiceManager.from_environment(environment).listens


@pytest.mark.parametrize(
    ("text", "address"),
    [("/run/x", "/run/x"), ("@x", "\0x"), ("", None), ("@", None), ("vsock:2:1", None), ("run/x", None)],
)
def test_address_of_the_manager_is_a_path_or_an_abstract_name(text: str, address: str | None) -> None:
    """Absolute paths and names with `@` are accepted, and all other values are ignored."""
    assert socket_address(text) == address


@pytest.mark.parametrize(
    ("microseconds", "pid", "seconds"),
    [("500000", "", 0.5), ("500000", "7", 0.5), ("500000", "8", None), ("0", "", None), ("", "7", None)],
)
def test_watchdog_applies_to_the_given_process_only(
    microseconds: str, pid: str, seconds: float | None
) -> None:
    """The timeout applies without a process ID or with our own."""
    assert watchdog_seconds(microseconds, pid, 7) == seconds


def test_status_is_one_line_of_bounded_length() -> None:
    """Newlines become spaces, and the line is cut to 1000 characters."""
    assert sentence((), ()) == "ready"
    assert sentence(("a\n b",), ("c",)) == "not ready: c, a b"
    assert len(sentence(("x" * 5000,), ())) == 1000


def test_status_that_is_not_unicode_is_escaped(manager: tuple[socket.socket, str]) -> None:
    """Surrogates, for example from a path of any bytes, are escaped and raise no error."""
    listening, address = manager
    answer = ServiceManager(socket_address(address))

    async def missing() -> tuple[str, ...]:
        return ("no room in /st\udcff", "it runs with \ud800")

    async def once() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                await answer.followed(missing, tuple)

    asyncio.run(once())
    assert [*_told(listening)] == ["STATUS=not ready: no room in /st\\udcff, it runs with \\ud800"]
