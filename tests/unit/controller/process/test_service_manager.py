"""What a service manager is told, at a socket such as its own."""

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
    """Return where a manager listens, and how it calls that place."""
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(name if request.param == "path" else "\0" + name[1:])
        listening.setblocking(False)
        yield listening, name if request.param == "path" else "@" + name[1:]


def _told(listening: socket.socket) -> Iterator[str]:
    """Yield what was sent, one datagram each."""
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


async def test_ready_is_said_once_and_how_it_is_whenever_that_changes(
    manager: tuple[socket.socket, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At sockets with and without a path; a program that is ready stays so for its manager."""
    monkeypatch.setattr(service_manager, "SOON_SECONDS", 0.005)
    monkeypatch.setattr(service_manager, "LATER_SECONDS", 0.005)
    listening, name = manager
    missing, remarks, told = ["first\nread", "drivers"], ["no room"], list[str]()

    async def lacking() -> tuple[str, ...]:
        return tuple(missing)

    subject = ServiceManager.of({"NOTIFY_SOCKET": name})
    async with _beside(subject.followed(lacking, lambda: tuple(remarks))):
        await _until(lambda: "STATUS=not ready: no room, first read, drivers" in _grown(told, listening))
        with subject.reloading():
            pass  # it is not ready, and must not be taken for it
        missing.clear()
        await _until(lambda: "STATUS=ready; but: no room" in _grown(told, listening))
        missing.append("a driver")
        await _until(lambda: "STATUS=not ready: no room, a driver" in _grown(told, listening))
        missing.clear()
        remarks.clear()
        await _until(lambda: "STATUS=ready" in _grown(told, listening))
        subject.stopping()
        subject.stopping()
        missing.append("an end")
        told.extend(_told(listening))
    assert told == [
        "STATUS=not ready: no room, first read, drivers",
        "READY=1",
        "STATUS=ready; but: no room",
        "STATUS=not ready: no room, a driver",
        "STATUS=ready",
        "STOPPING=1\nSTATUS=stopping",
    ]


async def test_a_reload_is_said_with_its_time_and_its_end(
    manager: tuple[socket.socket, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever becomes of it: what was in force goes on."""
    listening, name = manager
    told = list[str]()

    async def nothing() -> tuple[str, ...]:
        return ()

    subject = ServiceManager.of({"NOTIFY_SOCKET": name})
    async with _beside(subject.followed(nothing, tuple)):
        await _until(lambda: "STATUS=ready" in _grown(told, listening))
        before = time.monotonic_ns() // 1000
        with pytest.raises(ZeroDivisionError), subject.reloading():
            raise ZeroDivisionError
        reloading, ready = _told(listening)
        first, second = reloading.splitlines()
        assert (first, ready) == ("RELOADING=1", "READY=1")
        assert before <= int(second.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000


async def test_a_loop_that_turns_feeds_the_watchdog_and_one_that_is_held_does_not(
    manager: tuple[socket.socket, str],
) -> None:
    """Nor does one whose heart does not beat."""
    listening, name = manager
    alive = True
    environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(os.getpid())}
    subject = ServiceManager.of(environment)
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


async def test_what_there_is_no_room_for_is_said_again(
    manager: tuple[socket.socket, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """That the program is ready above all; nobody waits for a manager that does not read."""
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

    async with _beside(ServiceManager.of({"NOTIFY_SOCKET": name}).followed(nothing, tuple)):
        await _until(lambda: asked >= 3)
        assert {*_told(listening)} == {"X=1"}
        told = list[str]()
        await _until(lambda: "STATUS=ready" in _grown(told, listening))
    assert told == ["READY=1", "STATUS=ready"]


def test_no_child_finds_the_variables() -> None:
    """It would be taken for the program, or be watched in its place."""
    environment = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "HOME": "/"}
    assert ServiceManager.of(environment).listens
    assert environment == {"HOME": "/"}
    assert not ServiceManager.of(environment).listens


@pytest.mark.parametrize(
    ("text", "address"),
    [("/run/x", "/run/x"), ("@x", "\0x"), ("", None), ("@", None), ("vsock:2:1", None), ("run/x", None)],
)
def test_where_the_manager_listens(text: str, address: str | None) -> None:
    """A path, or a name without one; nothing else."""
    assert socket_address(text) == address


@pytest.mark.parametrize(
    ("microseconds", "pid", "seconds"),
    [("500000", "", 0.5), ("500000", "7", 0.5), ("500000", "8", None), ("0", "", None), ("", "7", None)],
)
def test_whom_the_watchdog_is_for(microseconds: str, pid: str, seconds: float | None) -> None:
    """The process that was started, and no other."""
    assert watchdog_seconds(microseconds, pid, 7) == seconds


def test_what_is_said_is_one_line() -> None:
    """And no longer than a manager takes."""
    assert sentence((), ()) == "ready"
    assert sentence(("a\n b",), ("c",)) == "not ready: c, a b"
    assert len(sentence(("x" * 5000,), ())) == 1000


def test_words_that_are_no_text_are_told(manager: tuple[socket.socket, str]) -> None:
    """A path of any bytes, or half a character that somebody else has said: it ends nobody."""
    listening, address = manager
    told = ServiceManager(socket_address(address))

    async def missing() -> tuple[str, ...]:
        return ("no room in /st\udcff", "it runs with \ud800")

    async def once() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                await told.followed(missing, tuple)

    asyncio.run(once())
    assert [*_told(listening)] == ["STATUS=not ready: no room in /st\\udcff, it runs with \\ud800"]
